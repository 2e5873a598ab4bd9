package ndn

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

func TestPacket(t *testing.T) {
	interest, data := interestOf(t, nameA), dataOf(t, nameA+sigs)
	token := LpFields{PitToken: []byte{1}}
	for _, c := range []struct {
		name string
		net  []byte
		f    LpFields
		kind Kind
		err  error
	}{
		{"Interest", interest, token, KindInterest, nil},
		{"Data", data, token, KindData, nil},
		{"Nack", interest, LpFields{IsNack: true, NackReason: NackNoRoute}, KindNack, nil},
		{"Nack of a Data", data, LpFields{IsNack: true}, 0, ErrType},
		{"a link packet in a link packet", lpOf(t, frag), LpFields{}, 0, ErrType},
		{"nothing", nil, LpFields{}, 0, ErrTruncated},
		{"broken Interest", interest[:len(interest)-1], LpFields{}, 0, ErrTruncated},
		{"broken Data", data[:len(data)-1], LpFields{}, 0, ErrTruncated},
	} {
		var p Packet
		err := p.Parse(c.net, &c.f)
		if !errors.Is(err, c.err) || err == nil && (p.Kind != c.kind || !bytes.Equal(p.Wire(), c.net) || !equalFields(&p.LpFields, &c.f)) {
			t.Errorf("%s: kind %d, %v", c.name, p.Kind, err)
		}
	}
}

// TestViewsPointIntoTheWire: the offsets behind the patching methods belong to
// the caller's buffer, so a forwarder patches what it sends.
func TestViewsPointIntoTheWire(t *testing.T) {
	w := sampleInterest()
	var p Packet
	if err := p.Parse(w, &LpFields{}); err != nil {
		t.Fatal(err)
	}
	p.Interest.SetHopLimit(7)
	p.Interest.SetNonce(0x99999999)
	var q Packet
	if err := q.Parse(w, &LpFields{}); err != nil || q.Interest.HopLimit != 7 || q.Interest.Nonce != 0x99999999 {
		t.Errorf("%+v, %v", q.Interest, err)
	}
}

func TestTime(t *testing.T) {
	const s = Time(time.Second)
	for _, c := range []struct{ got, want Time }{
		{s.Add(time.Second), 2 * s},
		{s.Add(-time.Second), 0},
		{Never.Add(time.Second), Never},
		{Never.Add(-time.Second), Never},
		{(Never - 1).Add(time.Hour), Never}, // no overflow
		{Earlier(0, s), s}, {Earlier(s, 0), s}, {Earlier(s, 2*s), s}, {Earlier(2*s, s), s}, {Earlier(0, 0), 0}, {Earlier(Never, s), s},
	} {
		if c.got != c.want {
			t.Errorf("%d, want %d", c.got, c.want)
		}
	}
	if (2*s).Sub(s) != time.Second || Time(0).IsSet() || !s.IsSet() {
		t.Error("Sub or IsSet")
	}
}
