package cc

// DefaultFixedWindow is the window of "fixed" in packets: it saturates a
// loopback path with 8 KB segments and fits into socket buffers of 4 MB.
const DefaultFixedWindow = 256

// Fixed keeps a constant window and reacts to nothing (ndn-tools,
// PipelineInterestsFixed, whose default is 1).
type Fixed struct{ window float64 }

// NewFixed makes a Fixed of Params.Window packets.
func NewFixed(p Params) (Controller, error) {
	o := options{given: p.Options}
	if err := o.done(); err != nil {
		return nil, err
	}
	w := p.Window
	if w < 1 {
		w = DefaultFixedWindow
	}
	return &Fixed{w}, nil
}

// OnSend implements Controller.
func (*Fixed) OnSend(*Send) {}

// OnData implements Controller.
func (*Fixed) OnData(*Sample) {}

// OnLoss implements Controller.
func (*Fixed) OnLoss(*Loss) {}

// OnMark implements Controller.
func (*Fixed) OnMark(*Sample) {}

// Cwnd implements Controller.
func (f *Fixed) Cwnd() float64 { return f.window }

// PacingRate implements Controller.
func (*Fixed) PacingRate() float64 { return 0 }
