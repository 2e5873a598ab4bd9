package cc

// Builtin lists the algorithms of this package, in the order in which help
// texts show them.
func Builtin() []Factory {
	return []Factory{
		{"fixed", "a constant window (--pipeline-size)", NewFixed},
		{"aimd", "additive increase, multiplicative decrease, as ndncatchunks", NewAimd},
		{"reno", "TCP Reno", NewReno},
		{"cubic", "CUBIC with HyStart++", NewCubic},
	}
}
