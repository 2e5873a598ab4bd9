package producer

import (
	"time"

	"ndnpop/ndn"
)

// typeExpiration is the ExpirationPeriod of NFD's management protocol.
const typeExpiration = 0x6d

// Elements of a ValidityPeriod (NDN Certificate Format v2), whose times are
// UTC.
const (
	typeValidity  = 0xfd
	typeNotBefore = 0xfe
	typeNotAfter  = 0xff
	validityTime  = "20060102T150405"
)

// Validity is the time in which a prefix announcement may be taken up, to the
// second. The zero Validity does not bound it.
type Validity struct{ From, To time.Time }

// NewAnnouncement makes a prefix announcement (NFD wiki, "Prefix Announcement
// Protocol"; NDNLPv2): Data named /<prefix>/32=PA/v=<version>/seg=0 whose
// content says for how long, in whole milliseconds from when it is received,
// the route that it makes known stays, and when it is valid: later on it is of
// no use to who has kept it.
func NewAnnouncement(prefix ndn.Name, version uint64, period time.Duration, valid Validity, s ndn.Signer) ([]byte, error) {
	n := prefix.Clone().Append(ndn.Component{Type: ndn.TypeKeyword, Value: []byte("PA")})
	n = n.AppendNumber(ndn.TypeVersion, version).AppendNumber(ndn.TypeSegment, 0)
	content := ndn.AppendNatTLV(nil, typeExpiration, uint64(period/time.Millisecond))
	if valid != (Validity{}) {
		at := func(b []byte, t uint32, v time.Time) []byte {
			return ndn.AppendTLV(b, t, []byte(v.UTC().Format(validityTime)))
		}
		content = ndn.AppendTLV(content, typeValidity, at(at(nil, typeNotBefore, valid.From), typeNotAfter, valid.To))
	}
	return ndn.AppendData(nil, &ndn.DataFields{Name: n, ContentType: ndn.ContentPrefixAnnouncement, Content: content}, s)
}
