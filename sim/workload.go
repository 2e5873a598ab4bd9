package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"ndnpop/ndn"
)

// Workload is fetches that arrive at random: a Poisson process of requests for
// objects with Zipf popularity, each at a client drawn evenly.
type Workload struct {
	Clients []*Node
	// Prefix of the objects, which are named by their rank, from 0 on: the
	// i-th is Prefix/i. RankSizes makes a producer serve them.
	Prefix  string
	Objects int
	// Zipf is the exponent of the popularity; 0 is uniform.
	Zipf float64
	// Rate is the mean number of requests per second, of all clients
	// together.
	Rate float64
	// Start and Until bound the time in which requests arrive.
	Start, Until time.Duration
	// Max, if positive, is the number of requests.
	Max int
	// Fetch is what all have in common: Controller, Params, Consumer, Access,
	// OnDone.
	Fetch FetchConfig
}

// Traffic is what a Workload did.
type Traffic struct {
	net   *Network
	w     Workload
	rng   *rand.Rand
	ranks []float64 // cumulative popularity
	base  uint64

	// Requests are those that came, in their order. Done ones have their
	// Elapsed set.
	Requests []Request
}

// Request is one fetch of a workload.
type Request struct {
	At      time.Duration
	Client  *Node
	Object  int // rank
	Done    bool
	Err     error
	Elapsed time.Duration
	// TTFB is the time to the first byte.
	TTFB  time.Duration
	Bytes uint64
}

// workloadFetches begins the numbers of workloads' fetches.
const workloadFetches uint64 = 1 << 32

// AddWorkload starts a workload.
func (n *Network) AddWorkload(w Workload) *Traffic {
	t := &Traffic{net: n, w: w}
	n.workloads++
	t.base = workloadFetches * n.workloads
	s := n.seed(seedWorkload, n.workloads)
	t.rng = rand.New(rand.NewPCG(s, mix(s)))
	if len(w.Clients) == 0 || w.Objects < 1 || !(w.Rate > 0) || !(w.Zipf >= 0) {
		n.fail(fmt.Errorf("workload of %s: want clients, objects, a rate and an exponent of at least 0", w.Prefix))
		return t
	}
	t.ranks = zipf(w.Objects, w.Zipf)
	n.At(w.Start+t.gap(), t.arrive)
	return t
}

// zipf is the cumulative distribution of ranks.
func zipf(objects int, s float64) []float64 {
	c := make([]float64, objects)
	sum := 0.0
	for i := range c {
		sum += math.Pow(float64(i+1), -s)
		c[i] = sum
	}
	for i := range c {
		c[i] /= sum
	}
	return c
}

// gap is the time to the next request.
func (t *Traffic) gap() time.Duration {
	return time.Duration(t.rng.ExpFloat64() / t.w.Rate * float64(time.Second))
}

func (t *Traffic) arrive() {
	n, w := t.net, &t.w
	if w.Until > 0 && n.Now() > w.Until || w.Max > 0 && len(t.Requests) >= w.Max {
		return
	}
	i, _ := slices.BinarySearch(t.ranks, t.rng.Float64())
	r := Request{At: n.Now(), Client: w.Clients[t.rng.IntN(len(w.Clients))], Object: min(i, w.Objects-1)}
	k := len(t.Requests)
	t.Requests = append(t.Requests, r)
	c := w.Fetch
	c.Name = w.Prefix + "/" + strconv.Itoa(r.Object)
	c.OnDone = func(f *Fetch) {
		t.done(&t.Requests[k], f)
		if w.Fetch.OnDone != nil {
			w.Fetch.OnDone(f)
		}
	}
	n.newFetch(r.Client, c, t.base+uint64(k)).begin()
	n.At(n.Now()+t.gap(), t.arrive)
}

func (t *Traffic) done(r *Request, f *Fetch) {
	s := f.Stats()
	r.Done, r.Err, r.Elapsed, r.Bytes = true, f.Err(), f.Elapsed(), s.Bytes
	if s.FirstByte.IsSet() {
		r.TTFB = s.FirstByte.Sub(s.Started)
	}
}

// RankSizes is for ProducerConfig.Sizes: it gives every object of a workload
// the size that size says for its rank.
func RankSizes(objects int, size func(rank int) int64) func(ndn.Name) int64 {
	sizes := make([]int64, objects)
	for i := range sizes {
		sizes[i] = size(i)
	}
	return func(path ndn.Name) int64 {
		c, rest := path.Next()
		rank := 0
		for _, b := range c.Value {
			if b < '0' || b > '9' || rank > objects {
				return -1
			}
			rank = rank*10 + int(b-'0')
		}
		if len(rest) > 0 || len(c.Value) == 0 || rank >= objects {
			return -1
		}
		return sizes[rank]
	}
}

// LogNormal gives sizes with a log-normal distribution around a median, sigma
// being the deviation of the logarithm, as web objects have them. The size of
// a rank depends on the seed and the rank alone.
func LogNormal(seed uint64, median int64, sigma float64) func(rank int) int64 {
	return func(rank int) int64 {
		r := rand.New(rand.NewPCG(seed, uint64(rank)))
		return max(1, int64(float64(median)*math.Exp(sigma*r.NormFloat64())))
	}
}
