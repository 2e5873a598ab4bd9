package run

import (
	"testing"
	"time"

	"ndnpop/ndn"
)

// TestRecentLoad: the share is that of the last whole second, and decays to
// nothing when nothing happens any more.
func TestRecentLoad(t *testing.T) {
	var r recentLoad
	now := ndn.Time(0).Add(time.Hour)
	r.roll(now)
	for range 20 {
		now = now.Add(100 * time.Millisecond)
		r.add(now, 25*time.Millisecond)
	}
	if s := r.share(now); s < 0.24 || s > 0.26 {
		t.Errorf("busy a quarter of the time, and the share is %v", s)
	}
	if s := r.share(now.Add(time.Minute)); s != 0 {
		t.Errorf("idle for a minute, and the share is %v", s)
	}
}
