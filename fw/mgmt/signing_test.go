package mgmt

import (
	"crypto/sha256"
	"encoding/binary"

	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// signDigest makes an Interest with application parameters, signed with a
// digest as ndnd and NDNts do it.
func (b *bench) signDigest(n ndn.Name, app []byte) []byte {
	b.random++
	st := b.stamper.Stamp(b.wall, b.random)
	info := []byte{byte(ndn.TypeSigType), 1, byte(ndn.SigDigestSha256)}
	info = binary.BigEndian.AppendUint64(append(info, 0x26, 8), st.SigNonce)
	info = ndn.AppendNatTLV(info, 0x28, uint64(st.Time.UnixMilli()))
	tail := ndn.AppendTLV(nil, ndn.TypeAppParameters, app)
	tail = ndn.AppendTLV(tail, ndn.TypeInterestSigInfo, info)
	sum := sha256.Sum256(append(append([]byte(nil), n...), tail...))
	tail = ndn.AppendTLV(tail, ndn.TypeInterestSigVal, sum[:])
	digest := sha256.Sum256(tail)
	n = ndn.AppendTLV(n.Clone(), ndn.TypeParamsDigest, digest[:])
	return ndn.AppendInterest(nil, &ndn.InterestFields{Name: n, Nonce: st.Nonce, Params: tail})
}

// rawCommand sends a rib/register whose parameters are raw.
func (b *bench) rawCommand(raw []byte) proto.ControlResponse {
	b.t.Helper()
	n := ndn.AppendTLV(dataset4("rib", "register"), ndn.TypeGeneric, raw)
	return b.response(b.deliver(localFace, b.signDigest(n, nil)))
}

// announce makes a rib/announce.
func (b *bench) announce(data []byte) []byte {
	return b.signDigest(dataset4("rib", "announce"), data)
}
