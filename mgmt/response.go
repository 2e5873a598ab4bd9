package mgmt

import (
	"fmt"

	"ndnpop/ndn"
)

// Status codes of a ControlResponse (NFD wiki, "Control Command"; the
// individual commands define the others).
const (
	StatusOK             uint64 = 200
	StatusBadRequest     uint64 = 400
	StatusForbidden      uint64 = 403
	StatusNotFound       uint64 = 404
	StatusNotAcceptable  uint64 = 406
	StatusConflict       uint64 = 409 // the body describes the face that exists
	StatusGone           uint64 = 410
	StatusNameTooLong    uint64 = 414
	StatusNotImplemented uint64 = 501
	StatusUnavailable    uint64 = 503
	StatusTimeout        uint64 = 504
)

// ControlResponse is the answer to a command.
type ControlResponse struct {
	Code uint64
	Text string
	Body *ControlParameters // nil when absent
}

// OK reports whether the command succeeded.
func (r *ControlResponse) OK() bool { return r.Code == StatusOK }

// Err returns nil if the command succeeded and a *StatusError otherwise.
func (r *ControlResponse) Err() error {
	if r.OK() {
		return nil
	}
	return &StatusError{r.Code, r.Text, r.Body}
}

// StatusError is a forwarder's refusal of a command.
type StatusError struct {
	Code uint64
	Text string
	Body *ControlParameters // nil when absent
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the forwarder answered %d %q", e.Code, e.Text)
}

func (r *ControlResponse) fields() []field {
	return []field{
		{typ: typeStatusCode, req: &r.Code},
		{typ: typeStatusText, reqText: &r.Text},
	}
}

// AppendTo appends the whole ControlResponse element.
func (r *ControlResponse) AppendTo(b []byte) []byte {
	start := len(b)
	b = append(b, make([]byte, 10)...)
	b = appendFields(b, r.fields())
	if r.Body != nil {
		b = r.Body.AppendTo(b)
	}
	return closeElement(b, start, typeControlResponse)
}

// ParseControlResponse decodes a ControlResponse element, tolerating unknown
// fields. A body that is not ControlParameters is an error.
func ParseControlResponse(wire []byte) (ControlResponse, error) {
	var r ControlResponse
	v, err := unwrap(wire, typeControlResponse)
	if err != nil {
		return r, err
	}
	err = parseFields(v, r.fields(), tolerant, func(e ndn.Element) (bool, error) {
		if e.Type != typeControlParameters {
			return false, nil
		}
		if r.Body != nil {
			return true, fmt.Errorf("%w: two bodies", ErrMalformed)
		}
		r.Body = &ControlParameters{}
		return true, parseFields(e.Value, r.Body.fields(), tolerant, nil)
	})
	if err != nil {
		return ControlResponse{}, err
	}
	return r, nil
}

// ParseResponse decodes the answer to a command. It does not verify the
// signature, which for the forwarder of the own host says nothing that the
// socket does not say already. A Data of content type Nack is an error.
func ParseResponse(d *ndn.Data) (ControlResponse, error) {
	if d.ContentType == ndn.ContentNack {
		return ControlResponse{}, fmt.Errorf("%w: application nack", ErrMalformed)
	}
	return ParseControlResponse(d.Content)
}
