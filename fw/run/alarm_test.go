package run

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ndnpop/ndn"
)

func TestAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		a := newAlarms(c)
		a.stop = make(chan struct{})
		ended := make(chan struct{})
		go func() { a.run(); close(ended) }()
		start := c.now()
		at := func(ms int) ndn.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
		var fired []int
		var x [6]*alarm
		for i := range x {
			x[i] = newAlarm(func(now ndn.Time) ndn.Time {
				fired = append(fired, i*10000+int(now.Sub(start)/time.Millisecond))
				if i == 3 && now < at(60) {
					return now.Add(20 * time.Millisecond)
				}
				return ndn.Never
			})
		}
		a.arm(x[0], at(50))
		a.arm(x[1], at(10))
		a.arm(x[2], at(30))
		a.arm(x[2], at(40)) // later: the earlier one holds
		a.arm(x[3], at(25)) // repeats itself
		a.arm(x[4], at(20))
		a.disarm(x[4])
		a.arm(x[5], at(45))
		a.arm(x[5], at(5)) // earlier
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		want := []int{50005, 10010, 30025, 20030, 30045, 50, 30065}
		if !slices.Equal(fired, want) {
			t.Errorf("fired %v, want %v", fired, want)
		}
		if a.queue.Len() != 0 {
			t.Errorf("%d alarms left", a.queue.Len())
		}
		// Armed for the past after a time of rest: at once.
		a.arm(x[0], at(0)+1)
		synctest.Wait()
		if fired[len(fired)-1] != 200 {
			t.Errorf("fired %v", fired)
		}
		close(a.stop)
		<-ended
	})
}
