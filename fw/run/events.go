package run

import "slices"

// observer is one call of Observe.
type observer struct{ fn func(Event) }

// Observe calls fn for every event from now on, one at a time and in order,
// on the goroutine that caused it. fn must not block and must not call the
// forwarder. cancel ends it.
func (f *Forwarder) Observe(fn func(Event)) (cancel func()) {
	o := &observer{fn}
	f.evMu.Lock()
	f.observers = append(f.observers, o)
	f.evMu.Unlock()
	return func() {
		f.evMu.Lock()
		f.observers = slices.DeleteFunc(f.observers, func(x *observer) bool { return x == o })
		f.evMu.Unlock()
	}
}

func (f *Forwarder) emit(e Event) {
	f.evMu.Lock()
	for _, o := range f.observers {
		o.fn(e)
	}
	f.evMu.Unlock()
}
