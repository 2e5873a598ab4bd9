package table

import "ndnpop/ndn"

// Choices maps name prefixes to the strategies chosen for them, by the
// shard's numbers. Names without a choice of their own have that of their
// longest prefix.
type Choices struct {
	set    prefixes[uint32]
	hasher ndn.Hasher
	limit  int
}

// NewChoices returns an empty table of at most limit choices.
func NewChoices(h ndn.Hasher, limit int) *Choices { return &Choices{hasher: h, limit: limit} }

// Len is the number of choices.
func (c *Choices) Len() int { return c.set.count() }

// Longest returns the strategy for n, 0 without one. hashes are those of n's
// prefixes.
func (c *Choices) Longest(hashes []uint64, n ndn.Name) uint32 {
	slot, ok := c.set.longest(hashes, n)
	if !ok {
		return 0
	}
	return c.set.slab.at(slot).value
}

// Find returns the strategy chosen for exactly this prefix, 0 without one.
func (c *Choices) Find(n ndn.Name) uint32 {
	slot, ok := c.set.get(c.hasher.Name(n), n)
	if !ok {
		return 0
	}
	return c.set.slab.at(slot).value
}

// Set chooses a strategy for a prefix, which is copied, in place of any
// earlier choice.
func (c *Choices) Set(n ndn.Name, strategy uint32) error {
	h := c.hasher.Name(n)
	slot, ok := c.set.get(h, n)
	switch {
	case ok:
	case c.set.count() >= c.limit:
		return ErrFull
	case n.Len() > ndn.MaxComponents:
		return ErrTooLong
	default:
		slot = c.set.add(h, n)
	}
	c.set.slab.at(slot).value = strategy
	return nil
}

// Remove removes a choice and reports whether there was one.
func (c *Choices) Remove(n ndn.Name) bool {
	slot, ok := c.set.get(c.hasher.Name(n), n)
	if ok {
		c.set.remove(slot)
	}
	return ok
}

// Each calls fn for every choice until it returns false, in an order that
// depends on the history of the table alone.
func (c *Choices) Each(fn func(prefix ndn.Name, strategy uint32) bool) {
	c.set.each(func(n ndn.Name, v *uint32) bool { return fn(n, *v) })
}
