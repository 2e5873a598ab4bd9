package run

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"

	"ndnpop/ndn"
)

// Allowance bounds what is sent to a datagram peer that nobody configured, as
// long as it has not shown that it receives what is sent to its address. The
// zero value of a field is its default.
//
// A datagram's source address is easily forged, and Data are a hundred times
// as large as the Interests that ask for them: without a bound, anybody could
// have the forwarder flood a third party.
//
// What a peer shows that it could not know otherwise is a random number that
// was sent to it. Links of this project send back the Challenge of a link
// header (package lp) with their next packet, so they are proven one round trip
// after the first answer. Forwarders that do not know that field (NFD,
// NDN-DPDK) return an Interest that has no route as a Nack, with its name and
// Nonce: such an Interest is sent once a peer needs more than a small part of
// the burst. Peers that do neither stay within the allowance; an operator who
// expects more of them configures a face, or a larger allowance. A proof holds
// for a minute, and is renewed while there is traffic.
type Allowance struct {
	// Rate is in bytes per second for one peer; 1,000,000. Below 0 there is no
	// bound at all.
	Rate int64
	// Total is in bytes per second for all peers of a listener that are not
	// proven; 8,000,000.
	Total int64
	// Factor is how many bytes each byte that was received from a peer buys;
	// 150, which is about what Data of 8 KB are to their Interests.
	Factor int64
	// Burst is in bytes: what a peer may get at once before it has sent
	// anything but its first packet; 256 KiB.
	Burst int64
}

func (a *Allowance) defaults() {
	for _, v := range []struct {
		p *int64
		d int64
	}{{&a.Rate, 1e6}, {&a.Total, 8e6}, {&a.Factor, 150}, {&a.Burst, 256 << 10}} {
		if *v.p == 0 {
			*v.p = v.d
		}
	}
}

const (
	proofTime   = time.Minute
	proofAgain  = 10 * time.Second // a proof of that age is renewed
	echoAgain   = time.Second      // between two Interests that ask for a Nack
	echoPortion = 4                // they are sent when 1/4 of the burst is spent
	// A challenge rides on packets when 1/8 of the burst is spent: whoever
	// asks for little gets packets without fields it may not know.
	challengePortion = 8
)

// bucket is a token bucket, kept as the time when it will be full again
// (ITU-T I.371, GCRA).
type bucket struct {
	rate, burst int64 // bytes per second, bytes
	full        ndn.Time
}

// take takes n bytes, if they are there.
func (b *bucket) take(now ndn.Time, n int64) bool {
	full := max(b.full, now).Add(time.Duration(n * int64(time.Second) / b.rate))
	if full.Sub(now) > time.Duration(b.burst*int64(time.Second)/b.rate) {
		return false
	}
	b.full = full
	return true
}

// spent is how much of the burst is gone.
func (b *bucket) spent(now ndn.Time) int64 {
	return int64(max(0, b.full.Sub(now))) * b.rate / int64(time.Second)
}

// shared is a bucket of several faces.
type shared struct {
	mu sync.Mutex
	bucket
}

// budget applies an Allowance to one face. The face's lock guards it.
type budget struct {
	allowed Allowance
	total   *shared // of the listener
	own     bucket
	earned  int64 // bytes that what was received has bought and that are left

	secret uint64
	proven ndn.Time // until then
	again  ndn.Time // the next challenge to a peer that is proven
	echo   []byte   // the Interest that asks for a Nack; nil before the first
	echoed bool     // that is what the peer answers
	echoAt ndn.Time // the next one
}

func newBudget(a Allowance, total *shared) *budget {
	return &budget{
		allowed: a, total: total, earned: a.Burst,
		own:    bucket{rate: a.Rate, burst: a.Burst},
		secret: rand.Uint64(),
	}
}

// received notes n bytes that came.
func (b *budget) received(n int) {
	b.earned = min(b.earned+int64(n)*b.allowed.Factor, max(b.allowed.Burst, b.allowed.Rate))
}

// prove notes that the peer knows the secret.
func (b *budget) prove(now ndn.Time) {
	b.proven, b.again = now.Add(proofTime), now.Add(proofAgain)
}

// response takes what came back of a challenge.
func (b *budget) response(now ndn.Time, n uint64) {
	if n == b.secret {
		b.prove(now)
	}
}

// echoPrefix is where the Interests are that ask for a Nack. The scope keeps
// them on the link.
var echoPrefix = ndn.MustName("/localhop/ndnpop/echo")

// nack reports whether a Nack is the answer to an Interest of echoInterest.
func (b *budget) nack(now ndn.Time, i *ndn.Interest) bool {
	if b.echo == nil || !i.Name.HasPrefix(echoPrefix) {
		return false
	}
	last, _ := i.Name.At(-1)
	if len(last.Value) == 8 && binary.BigEndian.Uint64(last.Value) == b.secret^echoMask {
		b.echoed = true
		b.prove(now)
	}
	return true
}

// echoMask makes the two challenges differ: a peer's packet in clear view of
// others is no answer to the other kind.
const echoMask = 0x6563686f6563686f

// verdict says what is to be done about a packet.
type verdict struct {
	pass      bool
	challenge bool // put the secret into its link header
	echo      bool // send echoInterest before it
}

// spend asks for n bytes to be sent.
func (b *budget) spend(now ndn.Time, n int) (v verdict) {
	if now < b.proven {
		v.pass = true
		if now >= b.again {
			b.again = now.Add(proofAgain)
			v.challenge, v.echo = true, b.echoed
		}
		return v
	}
	spent := b.own.spent(now)
	v.challenge = spent > b.allowed.Burst/challengePortion
	if spent > b.allowed.Burst/echoPortion && now >= b.echoAt {
		b.echoAt = now.Add(echoAgain)
		v.echo = true
	}
	v.pass = b.pay(now, n)
	return v
}

// repeat asks for n bytes to be sent that the link repeats.
func (b *budget) repeat(now ndn.Time, n int) bool { return now < b.proven || b.pay(now, n) }

// pay takes n bytes of what an unproven peer may get, if they are there.
func (b *budget) pay(now ndn.Time, n int) bool {
	size := int64(n)
	if size > b.earned || !b.own.take(now, size) {
		return false
	}
	b.total.mu.Lock()
	defer b.total.mu.Unlock()
	if !b.total.take(now, size) {
		return false
	}
	b.earned -= size
	return true
}

// echoInterest is an Interest that nobody has a route for, whose name only
// who receives it knows. It is the budget's.
func (b *budget) echoInterest() []byte {
	if b.echo == nil {
		name := echoPrefix.Append(ndn.Component{Type: ndn.TypeGeneric, Value: binary.BigEndian.AppendUint64(nil, b.secret^echoMask)})
		b.echo = ndn.AppendInterest(nil, &ndn.InterestFields{
			Name: name, Nonce: rand.Uint32(), Lifetime: echoAgain, HopLimit: 1,
		})
	}
	return b.echo
}
