package run

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"ndnpop/ndn"
)

// TestCreateFaceAtOnce: of several who create the same face at once, as routing
// daemons and operators do, one makes it and the others get the one that exists.
func TestCreateFaceAtOnce(t *testing.T) {
	f := start(t, Options{})
	peer := start(t, Options{})
	for range 8 {
		for _, uri := range []string{"tcp4://" + listenTCP(t, peer, "127.0.0.1:0", ListenOptions{}), "udp4://" + freePort(t, "udp")} {
			var wg sync.WaitGroup
			var made atomic.Int32
			var ids sync.Map
			for range 6 {
				wg.Go(func() {
					i, err := f.CreateFace(FaceSpec{URI: uri})
					switch {
					case err == nil:
						made.Add(1)
					case !errors.Is(err, ErrFaceExists):
						t.Errorf("%s: %v", uri, err)
					}
					ids.Store(i.ID, true)
				})
			}
			wg.Wait()
			n := 0
			ids.Range(func(id, _ any) bool {
				n++
				return id != ndn.FaceID(0)
			})
			if made.Load() != 1 || n != 1 {
				t.Errorf("%s: %d made, %d ids", uri, made.Load(), n)
			}
		}
	}
	// A failure is everybody's.
	uri := "tcp4://" + freePort(t, "tcp")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if i, err := f.CreateFace(FaceSpec{URI: uri}); err == nil || errors.Is(err, ErrFaceExists) {
				t.Errorf("%+v, %v", i, err)
			}
		})
	}
	wg.Wait()
}
