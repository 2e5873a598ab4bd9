package mgmt

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Bounds of the replay protection.
const (
	// replayGrace is how far the time of a command may be from ours (ndn-cxx,
	// ValidationPolicySignedInterest).
	replayGrace = 2 * time.Minute
	replayEach  = 8192 // commands remembered of one identity
	// replayKeys is the number of certified keys whose commands are remembered.
	replayKeys = 128
)

// replays remembers the commands of the last two minutes, so that none takes
// effect twice. Unlike ndn-cxx it does not demand that the times of one
// identity grow: commands overtake each other. Its memory is bounded: when a
// command must be forgotten early, all of the same identity that are not
// younger are refused from then on, but for those of anybody: who could repeat
// them could as well sign them anew, and one whose clock is ahead, or whose
// commands are many, must not shut out all others on this host.
//
// What was signed before the start is refused of those who prove who they are,
// for it may have taken effect in an earlier life of this program. The start is
// told by the clock as it is now: one that was ahead and has been set back must
// not have all commands refused until it gets there again.
type replays struct {
	byID map[identity]*replayLog // of those that the configuration names
	// certified are the logs of certified keys. A key whose log had to go
	// begins again behind all that was in it.
	certified *lru.Cache[identity, *replayLog]
	dropped   uint64 // milliseconds: a log of a certified key begins here
	// uptime is how long ago the start was, whatever has been done to the clock.
	uptime func(wall time.Time) time.Duration
}

type replayLog struct {
	seen  map[string]struct{}
	order []replayKey // in order of arrival, from head on
	head  int
	floor uint64 // milliseconds: commands up to here are refused
	last  uint64 // milliseconds: the youngest command's
}

type replayKey struct {
	time uint64
	key  string
}

// newReplays returns the memory of a server that starts at a time.
func newReplays(start time.Time) *replays {
	// Times of time.Now have a monotonic reading, which Sub takes.
	r := &replays{byID: map[identity]*replayLog{}, uptime: func(wall time.Time) time.Duration { return wall.Sub(start) }}
	// It fails for sizes below 1.
	r.certified, _ = lru.NewWithEvict(replayKeys, func(_ identity, l *replayLog) { r.dropped = max(r.dropped, l.last) })
	return r
}

// log returns what is remembered of an identity.
func (r *replays) log(id identity) *replayLog {
	l := r.byID[id]
	if id.kind == certifiedKey {
		l, _ = r.certified.Get(id)
	}
	if l != nil {
		return l
	}
	l = &replayLog{seen: map[string]struct{}{}}
	switch id.kind {
	case anybody, configured:
		r.byID[id] = l
	case certifiedKey:
		l.floor = r.dropped
		r.certified.Add(id, l)
	}
	return l
}

// admit records a command and returns "", or returns why it is refused.
func (r *replays) admit(id identity, s *signature, wall time.Time) string {
	now := uint64(max(wall.UnixMilli(), 0))
	grace := uint64(replayGrace / time.Millisecond)
	switch {
	case !s.hasTime || len(s.nonce) == 0:
		return "the signature has no time or no nonce"
	case len(s.nonce) > 64:
		return "the signature's nonce is too long"
	case s.time > now+grace:
		return "the signature's time lies ahead of this host's clock"
	case s.time+grace < now:
		return "the signature's time is too old"
	}
	if started := wall.Add(-r.uptime(wall)).UnixMilli(); id.kind != anybody && s.time < uint64(max(started, 0)) {
		return "the signature was made before this forwarder started"
	}
	l := r.log(id)
	if id.kind != anybody && s.time <= l.floor {
		return "the signature's time is older than commands that are forgotten"
	}
	// Those who share an identity may choose the same nonce.
	key := string(s.nonce) + string(binary.BigEndian.AppendUint64(nil, s.time))
	if len(s.key) > 0 {
		sum := sha256.Sum256(s.key)
		key += string(sum[:8])
	}
	if _, dup := l.seen[key]; dup {
		return "the command is a replay"
	}
	l.forget(now-min(now, grace), replayEach-1)
	l.seen[key] = struct{}{}
	l.order = append(l.order, replayKey{s.time, key})
	l.last = max(l.last, s.time)
	return ""
}

// forget drops commands from before oldest, which are refused for their age,
// and then the longest known until at most n are left.
func (l *replayLog) forget(oldest uint64, n int) {
	for l.head < len(l.order) {
		k := l.order[l.head]
		if k.time >= oldest {
			if len(l.order)-l.head <= n {
				break
			}
			l.floor = max(l.floor, k.time)
		}
		delete(l.seen, k.key)
		l.order[l.head] = replayKey{}
		l.head++
	}
	if l.head > 64 && l.head*2 > len(l.order) {
		l.order = append(l.order[:0], l.order[l.head:]...)
		clear(l.order[len(l.order):cap(l.order)])
		l.head = 0
	}
}
