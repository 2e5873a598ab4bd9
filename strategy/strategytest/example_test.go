package strategytest_test

import (
	"fmt"
	"time"

	"ndnpop/strategy/bestroute"
	"ndnpop/strategy/strategytest"
)

// Two next hops; the cheaper one dies while one of its Interests is on the
// way.
func ExampleRecorder() {
	r, err := strategytest.New(1, bestroute.Factory())
	if err != nil {
		fmt.Println(err)
		return
	}
	near := r.AddHop(strategytest.Hop{Name: "near", Cost: 1, RTT: 10 * time.Millisecond})
	r.AddHop(strategytest.Hop{Name: "far", Cost: 2, RTT: 50 * time.Millisecond})
	c := r.AddConsumer(strategytest.Consumer{Object: "film", Segments: 4})
	r.At(25*time.Millisecond, near.Down)
	r.Run(time.Second)

	for _, s := range r.Sends {
		fmt.Println(s)
	}
	fmt.Println("longest gap:", c.Gap(0, c.Arrivals[3].At))
	// Output:
	// 0s /p/film/seg=0 -> near (Interest: cheapest not tried yet)
	// 10ms /p/film/seg=1 -> near (Interest: cheapest not tried yet)
	// 20ms /p/film/seg=2 -> near (Interest: cheapest not tried yet)
	// 25ms /p/film/seg=2 -> far again (NextHop: cheapest not tried yet)
	// 75ms /p/film/seg=3 -> far (Interest: cheapest not tried yet)
	// longest gap: 55ms
}
