package producer

import (
	"bytes"
	"testing"
	"time"

	"ndnpop/ndn"
)

// headers keeps the announcements of the link headers that are sent.
type headers struct{ announced [][]byte }

func (h *headers) Send(_ []byte, f *ndn.LpFields) {
	h.announced = append(h.announced, bytes.Clone(f.Announcement))
}

func TestAnnouncement(t *testing.T) {
	wire, err := NewAnnouncement(ndn.MustName("/cdn"), 7, time.Hour, Validity{}, ndn.DigestSigner{})
	if err != nil {
		t.Fatal(err)
	}
	var d ndn.Data
	if err := d.Parse(wire); err != nil || !d.VerifyDigest() || d.ContentType != ndn.ContentPrefixAnnouncement {
		t.Fatalf("%+v, %v", d, err)
	}
	if got := d.Name.String(); got != "/cdn/32=PA/v=7/seg=0" {
		t.Error(got)
	}
	if want := []byte{0x6d, 4, 0, 0x36, 0xee, 0x80}; !bytes.Equal(d.Content, want) {
		t.Errorf("% x", d.Content)
	}

	from := time.Date(2026, 11, 30, 23, 0, 0, 5e8, time.FixedZone("", 3600))
	renewed, err := NewAnnouncement(ndn.MustName("/cdn"), 8, time.Hour, Validity{from, from.Add(24 * time.Hour)}, ndn.DigestSigner{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Parse(renewed); err != nil {
		t.Fatal(err)
	}
	want := "\x6d\x04\x00\x36\xee\x80" +
		"\xfd\x00\xfd\x26\xfd\x00\xfe\x0f20261130T220000\xfd\x00\xff\x0f20261201T220000"
	if string(d.Content) != want {
		t.Errorf("%q", d.Content)
	}

	out := &headers{}
	store := &oneStore{memObject{version: 1, segment: 8000, data: make([]byte, 9000)}}
	r, err := New(Config{Prefix: ndn.MustName("/cdn"), Announcement: wire}, store, out)
	if err != nil {
		t.Fatal(err)
	}
	for _, marked := range []bool{false, true} {
		ps := segmentInterests(t, "/cdn/a/v=1", 1)
		ps[0].NonDiscovery = marked
		if err := r.Receive(1, &ps[0]); err != nil {
			t.Fatal(err)
		}
	}
	r.Announce(renewed)
	ps := segmentInterests(t, "/cdn/a/v=1", 1)
	if err := r.Receive(1, &ps[0]); err != nil || len(out.announced) != 3 || !bytes.Equal(out.announced[2], renewed) {
		t.Errorf("%v, %x", err, out.announced)
	}
	if !bytes.Equal(out.announced[0], wire) || len(out.announced[1]) > 0 {
		t.Errorf("%x", out.announced)
	}
}
