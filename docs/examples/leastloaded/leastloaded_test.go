package leastloaded

import (
	"ndnpop/strategy/strategytest"
	"testing"
	"time"
)

func TestShares(t *testing.T) { // a third of the Data per second, a third of the Interests
	r, _ := strategytest.New(1, Factory())
	r.AddHop(strategytest.Hop{Name: "fast", Cost: 1, RTT: 10 * time.Millisecond, Rate: 300})
	slow := r.AddHop(strategytest.Hop{Name: "slow", Cost: 2, RTT: 10 * time.Millisecond, Rate: 150})
	r.AddConsumer(strategytest.Consumer{Window: 20})
	r.Run(10 * time.Second)
	if s := r.Share(slow, time.Second, 10*time.Second); s < .28 || s > .38 {
		t.Errorf("the slow next hop got %.2f of the Interests", s)
	}
}
