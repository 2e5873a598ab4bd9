package run

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/face/udp"
	"ndnpop/fw"
	"ndnpop/ndn"
	"ndnpop/strategy"
)

// Options of a Forwarder. The zero value of a field is its default, except
// where it says otherwise.
type Options struct {
	Shard      fw.Config     // tables and their bounds; OnAnnouncement is set by New
	Strategies *strategy.Set // what SetStrategy can choose
	MaxFaces   int           // 65536
	MaxRoutes  int           // 4,194,304
	UDPMTU     int           // bytes, of UDP faces that name none; 0 follows the path
	UDP        *udp.Group    // receives for dialled UDP faces; nil: each by itself
	Link       lp.Config     // of every face; MTU, Fragment and LocalFields are set per face
	// Dial opens the transport of a face that is created by URI; nil means
	// UDP, TCP and Unix sockets.
	Dial func(ctx context.Context, uri string, mtu int) (face.Server, error)
	// DrainTime is how long Close waits for queues to empty; 2 s.
	DrainTime time.Duration
}

// Forwarder is a running forwarder. Its methods may be called from any
// goroutine.
type Forwarder struct {
	opts    Options
	clock   clock
	alarms  *alarms
	sweeper *sweeper
	units   []*unit
	frames  *freelist[face.Frames]
	batches *freelist[batch]
	ctx     context.Context // ends with the forwarder
	cancel  context.CancelFunc
	wg      sync.WaitGroup // every goroutine

	ribMu     sync.Mutex
	rib       *rib
	ribTimer  *alarm
	pending   []fibChange // to be given to the shards
	arena     ndn.Name    // the names in pending
	fibErrors uint64      // changes that a shard refused

	mu        sync.Mutex // the face table
	faces     map[ndn.FaceID]*netFace
	byURI     map[string]*netFace // by the URI asked for and the canonical one
	dialling  map[string]*dialling
	retired   map[string]FaceCounters // of destroyed faces, by scheme
	nextID    ndn.FaceID
	listeners []*listener
	closed    bool

	evMu      sync.Mutex
	observers []*observer

	internal *internalEnd
}

// New starts a forwarder without faces, listeners or routes.
func New(o Options) (*Forwarder, error) {
	if o.MaxFaces <= 0 {
		o.MaxFaces = 65536
	}
	if o.MaxRoutes <= 0 {
		o.MaxRoutes = 1 << 22
	}
	if o.DrainTime <= 0 {
		o.DrainTime = 2 * time.Second
	}
	c := newClock()
	f := &Forwarder{
		opts: o, clock: c, alarms: newAlarms(c), sweeper: newSweeper(),
		frames: newFramesPool(), batches: newBatchPool(),
		faces: map[ndn.FaceID]*netFace{}, byURI: map[string]*netFace{}, dialling: map[string]*dialling{},
		retired: map[string]FaceCounters{},
		nextID:  FirstFaceID,
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.rib = newRIB(o.MaxRoutes, f.collect)
	f.ribTimer = newAlarm(f.routesDue)
	u := &unit{f: f, faces: map[ndn.FaceID]*netFace{}}
	o.Shard.OnAnnouncement = u.learn
	if o.Shard.CS.Pages == nil {
		o.Shard.CS.Pages = newPages()
	}
	s, err := fw.New(o.Shard, o.Strategies, u)
	if err != nil {
		f.cancel()
		return nil, fmt.Errorf("run: %w", err)
	}
	u.shard, u.timer = s, newAlarm(u.due)
	f.units = []*unit{u}
	f.wg.Go(f.alarms.run)
	f.wg.Go(f.sweep)
	if err := f.startInternal(); err != nil {
		f.Close(f.ctx)
		return nil, err
	}
	return f, nil
}

// Now is the forwarder's clock.
func (f *Forwarder) Now() ndn.Time { return f.clock.now() }

// Close ends the forwarder: it stops listening, lets the queues of faces
// empty for a while, closes the faces, and returns when every goroutine has
// ended. A ctx that ends earlier cuts the wait for the queues short.
func (f *Forwarder) Close(ctx context.Context) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		f.wg.Wait()
		return
	}
	f.closed = true
	listeners := f.listeners
	f.mu.Unlock()
	f.cancel() // no reconnections from now on
	for _, l := range listeners {
		if l.streams {
			l.close()
		}
	}
	f.drain(ctx)
	for _, l := range listeners {
		l.close()
	}
	for _, fc := range f.list() {
		f.destroy(fc, face.ErrClosed)
	}
	close(f.alarms.stop)
	close(f.sweeper.stop)
	f.wg.Wait()
}

// drainStall is how long Close waits for queues that do not get shorter: who
// has not read for so long will not read the rest.
const drainStall = 250 * time.Millisecond

// drain waits until each face has had nothing queued at some time. What comes
// in meanwhile is forwarded, so there may always be something somewhere.
func (f *Forwarder) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.opts.DrainTime)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	left := slices.DeleteFunc(f.list(), func(fc *netFace) bool { return fc.id == InternalFace })
	least, since := math.MaxInt, time.Now()
	for {
		queued := 0
		left = slices.DeleteFunc(left, func(fc *netFace) bool {
			n := fc.queued()
			queued += n
			return n == 0
		})
		if queued < least {
			least, since = queued, time.Now()
		}
		if queued == 0 || time.Since(since) >= drainStall {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Counters are the shard's.
func (f *Forwarder) Counters() fw.Counters {
	u := f.units[0]
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.shard.Counters()
}
