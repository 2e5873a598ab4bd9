package strategy

import (
	"ndnpop/ndn"
	"ndnpop/table"
)

// Releaser is for a T of which something must be given back when it ends: its
// pointer has this method. It is called once, however the entry or prefix is
// forgotten, and must not use a Context.
type Releaser interface {
	Release()
}

// EntryState gives a strategy a T for every pending Interest. The zero
// EntryState is ready; a strategy has it as a field. Values are recycled and
// start as zero. See also [Releaser].
type EntryState[T any] struct{ free []*T }

// Get returns the T of the event's entry, a zero one at first. It is valid as
// long as the entry. It must not be called without an entry.
func (s *EntryState[T]) Get(c *Context) *T { return stateOf(&c.s.Entry.State, s, &s.free) }

// Peek returns the T of the event's entry if it has one, else nil.
func (s *EntryState[T]) Peek(c *Context) *T {
	if e := c.s.Entry; e != nil && e.State.Owner == table.StateOwner(s) {
		return e.State.Value.(*T)
	}
	return nil
}

// Recycle implements table.StateOwner.
func (s *EntryState[T]) Recycle(v any) { s.free = recycle(s.free, v) }

// PrefixState gives a strategy a T for every prefix it asks about. The zero
// PrefixState is ready; a strategy has it as a field, one per T. The table of
// prefixes is bounded: a T that was not used for long is forgotten, and starts
// as zero again.
type PrefixState[T any] struct {
	free []*T
	kind uint32
	// The T that was asked for last is likely to be asked for next.
	last     *T
	lastHash uint64
	lastName []byte
	hits     uint8
}

// Get returns the T of the FIB prefix that the event's Interest is forwarded
// by (of the empty name without a route). It is valid during the event.
func (s *PrefixState[T]) Get(c *Context) *T {
	c.look()
	if c.fib == nil {
		return s.get(c, c.hasher.Root(), nil)
	}
	return s.get(c, c.fib.Hash, c.fib.Prefix)
}

// At returns the T of the first depth components of the event's name.
func (s *PrefixState[T]) At(c *Context, depth int) *T {
	return s.Of(c, c.s.Name.Prefix(depth))
}

// Of returns the T of any name.
func (s *PrefixState[T]) Of(c *Context, n ndn.Name) *T {
	if s.last != nil && n.Equal(s.lastName) {
		return s.again(c)
	}
	return s.find(c, c.hasher.Name(n), n)
}

func (s *PrefixState[T]) get(c *Context, h uint64, n ndn.Name) *T {
	if s.last != nil && h == s.lastHash && n.Equal(s.lastName) {
		return s.again(c)
	}
	return s.find(c, h, n)
}

// again returns the T that was asked for last. Now and then the table must see
// that it is in use.
func (s *PrefixState[T]) again(c *Context) *T {
	if s.hits++; s.hits%16 != 0 {
		return s.last
	}
	return s.find(c, s.lastHash, s.lastName)
}

// find looks the T of a name up in the table.
func (s *PrefixState[T]) find(c *Context, h uint64, n ndn.Name) *T {
	if s.kind == 0 {
		c.kinds++
		s.kind = c.kinds
	}
	v := stateOf(c.measured.Get(h, n, s.kind), s, &s.free)
	s.last, s.lastHash, s.lastName = v, h, append(s.lastName[:0], n...)
	return v
}

// Recycle implements table.StateOwner.
func (s *PrefixState[T]) Recycle(v any) {
	if v.(*T) == s.last {
		s.last = nil
	}
	s.free = recycle(s.free, v)
}

func stateOf[T any](slot *table.State, owner table.StateOwner, free *[]*T) *T {
	if slot.Owner == owner {
		return slot.Value.(*T)
	}
	slot.Clear()
	var v *T
	if n := len(*free); n > 0 {
		v, *free = (*free)[n-1], (*free)[:n-1]
	} else {
		v = new(T)
	}
	slot.Owner, slot.Value = owner, v
	return v
}

func recycle[T any](free []*T, v any) []*T {
	p := v.(*T)
	if r, ok := v.(Releaser); ok {
		r.Release()
	}
	var zero T
	*p = zero
	return append(free, p)
}
