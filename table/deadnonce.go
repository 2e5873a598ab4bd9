package table

import (
	"time"

	"ndnpop/ndn"
)

// DeadNonceLifetime is how long a Nonce stays in the dead nonce list (NFD:
// DeadNonceList::DEFAULT_LIFETIME).
const DeadNonceLifetime = 6 * time.Second

// DeadNonces remembers which Nonces of which names were forwarded lately by
// entries that are gone, so that a looping Interest is known again. It holds
// keyed 64-bit hashes of both; a collision, which nobody without the key can
// provoke, makes one Interest look like a loop.
type DeadNonces struct {
	index    index
	ring     []deadNonce // a power of two
	first    uint64      // ring positions, counted from the beginning of time
	next     uint64
	limit    int
	lifetime time.Duration
	evicted  uint64
}

type deadNonce struct {
	key uint64
	at  ndn.Time
}

// NewDeadNonces returns a list of at most limit Nonces (rounded up to a power
// of two), each kept for lifetime.
func NewDeadNonces(limit int, lifetime time.Duration) *DeadNonces {
	n := indexMin
	for n < limit {
		n *= 2
	}
	return &DeadNonces{limit: n, lifetime: lifetime}
}

// Len is the number of Nonces held. Evicted is how many were forgotten before
// their time because the list was full.
func (d *DeadNonces) Len() int { return int(d.next - d.first) }

// Evicted is the number of Nonces that were forgotten before their time.
func (d *DeadNonces) Evicted() uint64 { return d.evicted }

func nonceKey(name uint64, nonce uint32) uint64 {
	k := (name ^ uint64(nonce)*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	return k ^ k>>32
}

// Has reports whether the Nonce of a name, given by its hash, was added within
// the lifetime.
func (d *DeadNonces) Has(now ndn.Time, name uint64, nonce uint32) bool {
	if d.next == d.first {
		return false
	}
	k := nonceKey(name, nonce)
	for slot, it, ok := d.index.find(k); ok; slot, it, ok = it.next() {
		if r := &d.ring[slot]; r.key == k {
			return now.Sub(r.at) < d.lifetime
		}
	}
	return false
}

// Add remembers a Nonce.
func (d *DeadNonces) Add(now ndn.Time, name uint64, nonce uint32) {
	for range 2 { // what expired goes twice as fast as it came
		if d.next != d.first && now.Sub(d.at(d.first).at) >= d.lifetime {
			d.drop()
		}
	}
	if d.Len() == len(d.ring) {
		d.grow()
	}
	k := nonceKey(name, nonce)
	for slot, it, ok := d.index.find(k); ok; slot, it, ok = it.next() {
		if d.ring[slot].key == k {
			// The later of the two counts: the older leaves the index now.
			d.index.remove(k, slot)
			break
		}
	}
	slot := uint32(d.next & uint64(len(d.ring)-1))
	d.ring[slot] = deadNonce{k, now}
	d.index.insert(k, slot)
	d.next++
}

func (d *DeadNonces) at(i uint64) *deadNonce { return &d.ring[i&uint64(len(d.ring)-1)] }

func (d *DeadNonces) drop() {
	r := d.at(d.first)
	d.index.remove(r.key, uint32(d.first&uint64(len(d.ring)-1))) // unless a later one did
	d.first++
}

func (d *DeadNonces) grow() {
	if len(d.ring) >= d.limit {
		d.drop()
		d.evicted++
		return
	}
	// Ring positions change with its size, so the index is made anew.
	old := *d
	d.ring = make([]deadNonce, max(indexMin, 2*len(old.ring)))
	d.index = index{}
	for i := old.first; i != old.next; i++ {
		r := *old.at(i)
		*d.at(i) = r
		if old.index.has(r.key, uint32(i&uint64(len(old.ring)-1))) {
			d.index.insert(r.key, uint32(i&uint64(len(d.ring)-1)))
		}
	}
}
