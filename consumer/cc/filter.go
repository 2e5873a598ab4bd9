package cc

// bwRounds is the length of the bandwidth filters in rounds (BBR).
const bwRounds = 10

// roundMax is the maximum over the last bwRounds rounds. The zero value is
// empty, in its first round.
type roundMax struct {
	v    [bwRounds]float64
	at   int
	best float64
}

// advance begins a round and forgets the oldest.
func (m *roundMax) advance() {
	m.at = (m.at + 1) % bwRounds
	m.v[m.at], m.best = 0, 0
	for _, v := range m.v {
		m.best = max(m.best, v)
	}
}

// add takes a value of the present round.
func (m *roundMax) add(v float64) {
	m.v[m.at] = max(m.v[m.at], v)
	m.best = max(m.best, v)
}

// max is 0 when there is no value.
func (m *roundMax) max() float64 { return m.best }
