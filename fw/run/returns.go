package run

import (
	"time"

	"ndnpop/ndn"
)

// returnSets of returnWays are how many refused peers are remembered, in 1 MiB:
// all of them for more than three seconds while 27,000 strangers a second are
// refused, and none for longer than returnTime.
const (
	returnSets = 1 << 15
	returnWays = 4
	returnTime = 10 * time.Second
)

// returns remembers which peers were refused a short while ago. Whoever forges
// addresses hardly sends from one twice, unless to be taken for somebody who
// comes back: therefore those who do have turns of their own, beside those of
// the newcomers, and no more.
type returns struct {
	sets [][returnWays]refusal // nil before the first one
}

type refusal struct {
	tag uint32 // of the address; 0: none
	at  uint32 // when, in milliseconds; it wraps, which costs nothing
}

// note remembers that the peer with a hash was refused. It takes the place of
// the one of its set that was refused the longest ago.
func (r *returns) note(now ndn.Time, key uint64) {
	if r.sets == nil {
		r.sets = make([][returnWays]refusal, returnSets)
	}
	set, tag, at := &r.sets[key%returnSets], tagOf(key), millis(now)
	place := 0
	for i := range set {
		if set[i].tag == tag || set[i].tag == 0 {
			place = i
			break
		}
		if at-set[i].at > at-set[place].at {
			place = i
		}
	}
	set[place] = refusal{tag, at}
}

// known reports whether that peer was refused within returnTime.
func (r *returns) known(now ndn.Time, key uint64) bool {
	if r.sets == nil {
		return false
	}
	set, tag := &r.sets[key%returnSets], tagOf(key)
	for i := range set {
		if set[i].tag == tag {
			return time.Duration(millis(now)-set[i].at)*time.Millisecond <= returnTime
		}
	}
	return false
}

func tagOf(key uint64) uint32 { return uint32(key>>32) | 1 }

func millis(t ndn.Time) uint32 { return uint32(int64(t) / int64(time.Millisecond)) }
