package papers

import "container/list"

// fileCache models a cache of whole files as HTTP caches are: the file used
// longest ago makes room. It holds sizes only.
type fileCache struct {
	capacity, held int64
	order          list.List // of rank, the latest in front
	at             map[int]*list.Element
	sizes          []int64
	parent         *fileCache // nil: the origin

	// Bytes that were asked for, that were there, and that the parent sent.
	asked, hit, fetched int64
}

func newFileCache(capacity int64, sizes []int64, parent *fileCache) *fileCache {
	return &fileCache{capacity: capacity, sizes: sizes, parent: parent, at: map[int]*list.Element{}}
}

// get asks for bytes of a file; a cache that lacks the file fetches all of it
// and keeps it, unless it is larger than the cache. Fetches take no time, so
// that two clients never fetch the same file at once: the best that request
// collapsing can do.
func (c *fileCache) get(rank int, bytes int64) {
	c.asked += bytes
	if e := c.at[rank]; e != nil {
		c.hit += bytes
		c.order.MoveToFront(e)
		return
	}
	size := c.sizes[rank]
	c.fetched += size
	if c.parent != nil {
		c.parent.get(rank, size)
	}
	if size > c.capacity {
		return
	}
	for c.held+size > c.capacity {
		last := c.order.Back()
		old := c.order.Remove(last).(int)
		delete(c.at, old)
		c.held -= c.sizes[old]
	}
	c.at[rank] = c.order.PushFront(rank)
	c.held += size
}

// share of the bytes asked for that caches had.
func share(caches []*fileCache) float64 {
	var asked, hit int64
	for _, c := range caches {
		asked, hit = asked+c.asked, hit+c.hit
	}
	return float64(hit) / float64(max(1, asked))
}
