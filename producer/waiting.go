package producer

import (
	"ndnpop/ndn"
)

// waiting is one Interest for content that is still to come. It owns its
// bytes.
type waiting struct {
	segment     uint64
	arrival     uint64
	expires     ndn.Time
	name        ndn.Name
	token       []byte
	canBePrefix bool
	digest      bool
	discovers   bool // the latest one
	key         string
}

// waitList is a bounded heap of waiting Interests, those for the smallest
// segment first, then in order of arrival. A repeated Interest replaces its
// predecessor: only the latest token counts.
type waitList struct {
	limit    int
	arrivals uint64
	heap     []*waiting
	byName   map[string]*waiting
	next     ndn.Time // no entry expires earlier; unset when unknown
	key      []byte   // scratch
}

func (l *waitList) len() int { return len(l.heap) }

// min returns the first entry, nil when there is none.
func (l *waitList) min() *waiting {
	if len(l.heap) == 0 {
		return nil
	}
	return l.heap[0]
}

// add copies an Interest into the list. added is false when the list is full of
// Interests for the same segment and earlier ones; instead says that another
// one had to go.
func (l *waitList) add(a *request, segment uint64, token []byte) (added, instead bool) {
	l.key = append(l.key[:0], a.name...)
	l.key = append(l.key, flag(a.canBePrefix)|flag(a.digest)<<1)
	w := l.byName[string(l.key)]
	if w == nil {
		if len(l.heap) >= l.limit {
			if instead = l.displace(segment); !instead {
				return false, false
			}
		}
		if l.byName == nil {
			l.byName = make(map[string]*waiting)
		}
		l.arrivals++
		w = &waiting{
			segment: segment, arrival: l.arrivals, name: a.name.Clone(),
			canBePrefix: a.canBePrefix, digest: a.digest, key: string(l.key),
		}
		l.byName[w.key] = w
		l.heap = append(l.heap, w)
		l.up(len(l.heap) - 1)
	}
	w.token, w.discovers = append(w.token[:0], token...), a.discovers
	w.expires = a.now.Add(a.lifetime)
	l.next = ndn.Earlier(l.next, w.expires)
	return true, instead
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// displace makes room for an Interest for a segment by forgetting one for the
// latest segment, if that is later: who asks for what is far off, for as long
// as he likes, must not keep others from what comes next.
func (l *waitList) displace(segment uint64) bool {
	latest := 0
	for i := len(l.heap) / 2; i < len(l.heap); i++ { // the leaves
		if l.heap[i].segment > l.heap[latest].segment {
			latest = i
		}
	}
	if l.heap[latest].segment <= segment {
		return false
	}
	l.remove(latest)
	return true
}

// pop removes the first entry.
func (l *waitList) pop() { l.remove(0) }

func (l *waitList) remove(i int) {
	delete(l.byName, l.heap[i].key)
	last := len(l.heap) - 1
	l.heap[i] = l.heap[last]
	l.heap[last] = nil
	l.heap = l.heap[:last]
	if i < last {
		l.down(i)
		l.up(i)
	}
	if last == 0 {
		l.next = 0
	}
}

// expire removes the entries whose time has come and returns their number.
func (l *waitList) expire(now ndn.Time) int {
	if !l.next.IsSet() || now < l.next {
		return 0
	}
	keep := l.heap[:0]
	l.next = 0
	for _, w := range l.heap {
		if w.expires <= now {
			delete(l.byName, w.key)
			continue
		}
		keep = append(keep, w)
		l.next = ndn.Earlier(l.next, w.expires)
	}
	n := len(l.heap) - len(keep)
	clear(l.heap[len(keep):])
	l.heap = keep
	for i := len(keep)/2 - 1; i >= 0; i-- {
		l.down(i)
	}
	return n
}

// deadline is when expire has something to do at the earliest.
func (l *waitList) deadline() ndn.Time {
	if !l.next.IsSet() {
		return ndn.Never
	}
	return l.next
}

func (l *waitList) less(i, j int) bool {
	a, b := l.heap[i], l.heap[j]
	if a.segment != b.segment {
		return a.segment < b.segment
	}
	return a.arrival < b.arrival
}

func (l *waitList) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !l.less(i, parent) {
			return
		}
		l.heap[i], l.heap[parent] = l.heap[parent], l.heap[i]
		i = parent
	}
}

func (l *waitList) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(l.heap) {
			return
		}
		if c+1 < len(l.heap) && l.less(c+1, c) {
			c++
		}
		if !l.less(c, i) {
			return
		}
		l.heap[i], l.heap[c] = l.heap[c], l.heap[i]
		i = c
	}
}
