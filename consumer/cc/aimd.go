package cc

// Aimd is the adaptive pipeline of ndn-tools (PipelineInterestsAimd with its
// defaults): Reno's rules from a first window of 2. Options as Reno's.
type Aimd struct{ Reno }

// aimdInitCwnd is the first window of Aimd in packets (ndn-tools).
const aimdInitCwnd = 2

// NewAimd makes an Aimd.
func NewAimd(p Params) (Controller, error) {
	r, err := newReno(p, aimdInitCwnd)
	if err != nil {
		return nil, err
	}
	return &Aimd{*r}, nil
}
