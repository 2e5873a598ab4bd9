package fw

// Counters count what a shard did. What is refused anywhere is counted here
// by its reason.
type Counters struct {
	// Packets received and sent, by kind.
	InInterests, InData, InNacks    uint64
	OutInterests, OutData, OutNacks uint64
	// OutRefused counts packets that a face's queue did not take.
	OutRefused uint64

	// Interests.
	Looped     uint64 // same Nonce by another way, or in the dead nonce list
	Aggregated uint64 // joined a pending Interest without being forwarded
	Suppressed uint64 // retransmissions that came too soon
	Satisfied  uint64 // entries that got Data
	Expired    uint64 // entries that did not

	// Data.
	Unsolicited         uint64 // nobody asked for it
	UnsolicitedAdmitted uint64 // of these, admitted to the content store
	HintMismatch        uint64 // did not satisfy an entry with another hint
	StaleTokens         uint64 // PIT tokens that were not ours, or too old

	// Refusals of packets.
	BadFace       uint64 // from a face that the shard does not know
	BadSize       uint64 // over 8800 bytes
	BadName       uint64 // over 32 components
	BadParams     uint64 // parameters digest missing or wrong
	BadScope      uint64 // /localhost on a non-local face
	HopLimit      uint64 // arrived with hop limit 0
	NextHopFace   uint64 // NextHopFaceId that cannot be followed
	UnknownNacks  uint64 // match no pending Interest and Nonce
	NackMultiAcc  uint64 // Nacks on links that are not point-to-point
	PitFull       uint64 // over the limit of entries in all
	PitFace       uint64 // over the limit of one face
	PitVariants   uint64 // too many hints or digests of one name
	InRecordsFull uint64 // too many downstreams of one entry
	TimersFull    uint64 // strategies' timers over the limit
	GaveUp        uint64 // reports of link services
	GaveUpUnknown uint64 // of these, without a pending Interest

	// Gauges.
	PitEntries     int
	FibEntries     int
	Routes         int
	Timers         int
	DeadNonces     int
	DeadNoncesLost uint64 // forgotten early because the list was full
	Measurements   int
}
