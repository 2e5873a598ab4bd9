package bestroute

import (
	"testing"

	"ndnpop/strategy/strategytest"
)

func TestParameters(t *testing.T) {
	strategytest.CheckParams(t, Factory(), map[string][]string{
		"retx-suppression-initial": {"0"}, "retx-suppression-max": {"1"}, "retx-suppression-multiplier": {"0"},
	})
}

func TestDoesNotAllocate(t *testing.T) { strategytest.CheckAllocs(t, Factory()) }

func BenchmarkHandlers(b *testing.B) { strategytest.Bench(b, Factory()) }

func TestLoopEnds(t *testing.T) { strategytest.CheckLoop(t, Factory(), 2) }
