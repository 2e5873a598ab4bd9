package stream

import "sync"

const chunkSize = 64 << 10

// chunk is one piece of a queue. b[r:w] waits to be written.
type chunk struct {
	next *chunk
	r, w int
	b    [chunkSize]byte
}

// chunks recycles the pieces of all queues, so that memory follows the
// backlog and not the number of faces.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// queue is a first-in, first-out queue of bytes.
type queue struct {
	head, tail *chunk
	len        int
}

func (q *queue) append(p []byte) {
	q.len += len(p)
	for len(p) > 0 {
		if q.tail == nil || q.tail.w == chunkSize {
			c := chunks.Get().(*chunk)
			c.next, c.r, c.w = nil, 0, 0
			if q.tail == nil {
				q.head = c
			} else {
				q.tail.next = c
			}
			q.tail = c
		}
		n := copy(q.tail.b[q.tail.w:], p)
		q.tail.w += n
		p = p[n:]
	}
}

// first is the front of the queue, empty if there is none. It stays in place
// until drop, also when more is appended.
func (q *queue) first() []byte {
	if q.head == nil {
		return nil
	}
	return q.head.b[q.head.r:q.head.w]
}

// drop takes n bytes, at most those of first, off the front.
func (q *queue) drop(n int) {
	if n == 0 {
		return
	}
	q.len -= n
	c := q.head
	if c.r += n; c.r < c.w {
		return
	}
	if q.head = c.next; q.head == nil {
		q.tail = nil
	}
	c.next = nil
	chunks.Put(c)
}

func (q *queue) reset() {
	for q.head != nil {
		q.drop(len(q.first()))
	}
}
