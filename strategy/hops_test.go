package strategy

import (
	"testing"
	"time"

	"ndnpop/ndn"
)

func TestHopsForgetTheLongestUnused(t *testing.T) {
	var h Hops[int]
	for f := ndn.FaceID(1); f <= MaxHops; f++ {
		*h.Of(f) = int(f)
	}
	h.Of(1)
	*h.Of(1000) = 5 // takes the place of 2
	if h.Find(2) != nil || *h.Find(1) != 1 || *h.Find(1000) != 5 || h.Len() != MaxHops {
		t.Error("wrong one forgotten")
	}
	if *h.Of(2) != 0 || h.Find(3) != nil {
		t.Error("a new one does not start as zero")
	}
	if f, v := h.At(0); f != 1 || *v != 1 {
		t.Error("At")
	}
}

func TestRTT(t *testing.T) {
	const ms = time.Millisecond
	var r RTT
	if r.Timeout(2, 5*ms, 100*ms) != 100*ms || r.Timeout(2, 200*ms, 100*ms) != 200*ms {
		t.Error("unknown")
	}
	r.Add(20 * ms)
	if r.Smooth != 20*ms || r.Var != 10*ms || r.Min != 20*ms || r.Timeout(2, 0, 0) != 60*ms {
		t.Errorf("%+v", r)
	}
	for range 100 {
		r.Add(10 * ms)
	}
	if r.Smooth-10*ms > 10*time.Microsecond || r.Var > ms || r.Min != 10*ms || r.Timeout(3, 50*ms, 0) != 50*ms {
		t.Errorf("%+v", r)
	}
	if d := r.Timeout(3, 0, 0); d < 30*ms || d > 31*ms {
		t.Error(d)
	}
	r.N = 1<<32 - 1
	r.Add(10 * ms)
	if r.N != 1<<32-1 {
		t.Error("the count overflows")
	}
}
