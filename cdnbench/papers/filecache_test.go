package papers

import "testing"

// TestFileCache: the file used longest ago makes room, and who lacks a file
// asks the parent for all of it.
func TestFileCache(t *testing.T) {
	sizes := []int64{40, 60, 50, 500}
	up := newFileCache(1000, sizes, nil)
	c := newFileCache(100, sizes, up)
	for _, rank := range []int{0, 1, 0, 2, 0, 1, 3, 3} {
		c.get(rank, 10)
	}
	// 0 and 1 fill it; 2 displaces 1; then 1 displaces 2. 3 fits nowhere.
	if c.asked != 80 || c.hit != 20 || c.fetched != 40+60+50+60+500+500 || c.held != 100 {
		t.Errorf("%+v", c)
	}
	if up.asked != c.fetched || up.hit != 60+500 || up.fetched != 40+60+50+500 {
		t.Errorf("parent %+v", up)
	}
	if s := share([]*fileCache{c}); s != 0.25 {
		t.Errorf("share %g", s)
	}
}
