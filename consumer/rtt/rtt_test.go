package rtt

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestFirstSample(t *testing.T) {
	e := New(Config{})
	if e.RTO() != time.Second {
		t.Fatalf("initial timeout %v", e.RTO())
	}
	e.Sample(100*ms, 1)
	if e.SRTT() != 100*ms || e.Var() != 50*ms || e.RTO() != 300*ms {
		t.Fatalf("srtt %v var %v rto %v", e.SRTT(), e.Var(), e.RTO())
	}
}

func TestSecondSampleAndScaling(t *testing.T) {
	e := New(Config{})
	e.Sample(100*ms, 1)
	e.Sample(200*ms, 1) // n = 1: var += (100-50)/4, srtt += 100/8
	if e.SRTT() != 112500*time.Microsecond || e.Var() != 62500*time.Microsecond {
		t.Fatalf("srtt %v var %v", e.SRTT(), e.Var())
	}
	s := New(Config{})
	s.Sample(100*ms, 1)
	s.Sample(200*ms, 20) // n = 10
	if s.SRTT() != 101250*time.Microsecond || s.Var() != 51250*time.Microsecond {
		t.Fatalf("scaled: srtt %v var %v", s.SRTT(), s.Var())
	}
}

func TestBackoff(t *testing.T) {
	e := New(Config{MaxBackoff: 4 * time.Second})
	for _, want := range []time.Duration{2, 4, 4, 4} {
		e.Backoff()
		if e.RTO() != want*time.Second {
			t.Fatalf("backed off to %v, want %v s", e.RTO(), want)
		}
	}
	e.Sample(50*ms, 1)
	if e.RTO() != DefaultMin {
		t.Fatalf("a sample must end backing off, rto %v", e.RTO())
	}
	e = New(Config{MaxBackoff: time.Second})
	e.Sample(2*time.Second, 1) // rto 6 s: above the bound, kept
	e.Backoff()
	if e.RTO() != 6*time.Second {
		t.Fatalf("an estimate above the bound must stand, got %v", e.RTO())
	}
}

func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := New(Config{Min: 10 * ms, Max: 5 * time.Second})
		lo, hi := time.Duration(1<<62), time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			if rapid.Bool().Draw(t, "backoff") {
				e.Backoff()
			} else {
				r := time.Duration(rapid.Int64Range(1, int64(100*time.Second)).Draw(t, "rtt"))
				lo, hi = min(lo, r), max(hi, r)
				e.Sample(r, rapid.IntRange(0, 10000).Draw(t, "inflight"))
			}
			if e.RTO() < 10*ms || e.RTO() > 5*time.Second {
				t.Fatalf("timeout %v out of its bounds", e.RTO())
			}
			if e.Samples() > 0 && (e.Min() != lo || e.Max() != hi || e.SRTT() < lo || e.SRTT() > hi ||
				e.Avg() < lo || e.Avg() > hi) {
				t.Fatalf("min %v max %v srtt %v of samples in %v..%v", e.Min(), e.Max(), e.SRTT(), lo, hi)
			}
		}
	})
}

func TestIgnoresNonsense(t *testing.T) {
	e := New(Config{})
	e.Sample(0, 1)
	e.Sample(-ms, 1)
	if e.Samples() != 0 {
		t.Fatal("took a sample that is not positive")
	}
}

// TestMultiple: a timeout of two round trips and four deviations.
func TestMultiple(t *testing.T) {
	e := New(Config{Multiple: 2, Min: 100 * ms})
	for range 100 {
		e.Sample(700*ms, 1)
	}
	if e.RTO() < 1400*ms || e.RTO() > 1410*ms {
		t.Errorf("timeout %v", e.RTO())
	}
}
