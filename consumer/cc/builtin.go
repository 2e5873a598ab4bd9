package cc

// Builtin lists the algorithms of this package, in the order in which help
// texts show them.
func Builtin() []Factory {
	return []Factory{
		{"fixed", "a constant window (--pipeline-size)", NewFixed},
		{"aimd", "additive increase, multiplicative decrease, as ndncatchunks", NewAimd},
		{"reno", "TCP Reno", NewReno},
		{"cubic", "CUBIC with HyStart++", NewCubic},
		{"vegas", "TCP Vegas: keeps a few packets in the queue", NewVegas},
		{"bbr", "BBR v1: paces at the measured bandwidth, whatever is lost", NewBbr},
		{"bbr-gc", "BBR with gamma-corrected gains, fair to short paths", NewBbrGc},
		{"bbq", "BBR with short probes, fair to short paths", NewBbq},
		{"bbr-acw", "BBR with an adaptive window gain, fair to short paths", NewBbrAcw},
		{"mpc", "model predictive control of the RTT, with a target between empty and full queue", NewMpc},
	}
}
