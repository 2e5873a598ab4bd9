package mgmt

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Bounds of the replay protection.
const (
	// replayGrace is how far the time of a command may be from ours (ndn-cxx,
	// ValidationPolicySignedInterest).
	replayGrace = 2 * time.Minute
	replayEach  = 8192 // commands remembered of one identity
)

// replays remembers the commands of the last two minutes, so that none takes
// effect twice. Unlike ndn-cxx it does not demand that the times of one
// identity grow: all applications that sign with DigestSha256 are one, and
// their commands overtake each other. Its memory is bounded: when a command
// must be forgotten early, all that are not younger are refused from then on.
type replays struct {
	byID map[identity]*replayLog
}

type replayLog struct {
	seen  map[string]struct{}
	order []replayKey // in order of arrival, from head on
	head  int
	floor uint64 // milliseconds: commands up to here are refused
}

type replayKey struct {
	time uint64
	key  string
}

func newReplays() *replays { return &replays{map[identity]*replayLog{}} }

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
	l := r.byID[id]
	if l == nil {
		l = &replayLog{seen: map[string]struct{}{}}
		r.byID[id] = l
	}
	if s.time <= l.floor {
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
