package producer

import (
	"time"

	"ndnpop/ndn"
)

// typeExpiration is the ExpirationPeriod of NFD's management protocol.
const typeExpiration = 0x6d

// NewAnnouncement makes a prefix announcement as NDNLPv2 has it: Data named
// /<prefix>/32=PA/v=<version>/seg=0 whose content says for how long, in whole
// milliseconds from when it is received, the route that it makes known stays.
func NewAnnouncement(prefix ndn.Name, version uint64, period time.Duration, s ndn.Signer) ([]byte, error) {
	n := prefix.Clone().Append(ndn.Component{Type: ndn.TypeKeyword, Value: []byte("PA")})
	n = n.AppendNumber(ndn.TypeVersion, version).AppendNumber(ndn.TypeSegment, 0)
	return ndn.AppendData(nil, &ndn.DataFields{
		Name: n, ContentType: ndn.ContentPrefixAnnouncement,
		Content: ndn.AppendNatTLV(nil, typeExpiration, uint64(period/time.Millisecond)),
	}, s)
}
