package run

import (
	"math/rand/v2"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

// greetEvery is how often the face to a datagram peer that somebody configured
// greets it. To the peer we are a stranger, who gets little at once until he is
// proven (Allowance), and a proof ends without traffic. Who greets is proven
// before the first Interests come, and those may come all at once: when this
// peer takes over what another one was asked for.
const greetEvery = 20 * time.Second

// acquainted is how often a persistent face looks whether it may greet.
const acquainted = time.Second

// greet is the timer of greetings: a frame without a packet and with a
// Challenge, which a link of this project answers at once and others ignore. A
// face that is not permanent ends when its peer's host refuses a frame: it
// waits for a sign of life, so that who makes a face and then its routes, or
// starts the peer later, finds it.
func (fc *netFace) greet(now ndn.Time) ndn.Time {
	fc.mu.Lock()
	if fc.gone {
		fc.mu.Unlock()
		return ndn.Never
	}
	if fc.persistency != face.PersistencyPermanent &&
		(fc.link.Counters().InFrames == 0 || now.Sub(fc.lastIn) > greetEvery) {
		fc.mu.Unlock()
		return now.Add(acquainted)
	}
	// The answer itself says nothing to us.
	greeted := fc.up && fc.idleLocked(rand.Uint64(), true)
	fc.mu.Unlock()
	if greeted {
		fc.flush()
	}
	return now.Add(greetEvery)
}

// answerLocked answers a greeting, or the answer to ours, with what the peer
// is owed, and asks a stranger to prove himself in turn. Its answer to that
// asks for nothing, so that this ends.
func (fc *netFace) answerLocked(now ndn.Time) {
	if !fc.up || fc.info.Stream {
		return
	}
	b := fc.budget
	if b == nil || fc.persistency != face.PersistencyOnDemand {
		fc.idleLocked(0, false)
		return
	}
	unproven := now >= b.proven
	if v := b.spend(now, idleSize); v.pass {
		fc.idleLocked(b.secret, unproven || v.challenge)
	}
}

// idleSize is about the size of an idle frame with both numbers, in bytes.
const idleSize = 28

// idleLocked queues a frame without a packet, with a Challenge if ask is set.
// It reports false if there is no room.
func (fc *netFace) idleLocked(challenge uint64, ask bool) bool {
	if fc.out == nil {
		fc.out = fc.f.frames.get()
	} else if len(fc.out.Buf) >= maxPending {
		return false
	}
	if ask {
		fc.link.Challenge(challenge)
	}
	fc.link.Idle(fc.out)
	return true
}
