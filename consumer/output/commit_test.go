package output

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"os"
	"path/filepath"
	"testing"

	"ndnpop/consumer"
	"ndnpop/ndn"
)

// Who is interrupted between the final name and the removal of the journal has nothing
// to fetch again, and keeps what has its name, whatever becomes of the object.
func TestInterruptedCommit(t *testing.T) {
	all := []byte("the whole content")
	n := uint64(len(all))
	end := consumer.Resume{Segment: 1, Done: n, HasFinal: true}
	interrupted := func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "f")
		f := create(t, path)
		if err := f.Write(all, end); err != nil {
			t.Fatal(err)
		}
		if err := f.name(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	holds := func(t *testing.T, path string) {
		t.Helper()
		if b, _ := os.ReadFile(path); !bytes.Equal(b, all) {
			t.Fatalf("the final name holds %q", b)
		}
		if exists(path + ".part") {
			t.Fatal("a part file is left")
		}
	}
	resume := func(t *testing.T, path string, sum hash.Hash) *File {
		t.Helper()
		f, err := ResumeFile(t.Context(), path, "all", sum)
		if err != nil {
			t.Fatal(err)
		}
		if f.Lost() > 0 {
			t.Fatalf("%d bytes are lost", f.Lost())
		}
		return f
	}

	t.Run("goes on", func(t *testing.T) {
		path, sum := interrupted(t), sha256.New()
		f := resume(t, path, sum)
		if got := sha256.Sum256(all); !bytes.Equal(sum.Sum(nil), got[:]) {
			t.Fatal("the content is not in the hash")
		}
		if at, err := f.Open(&objectV1); err != nil || at != end {
			t.Fatalf("goes on at %+v, %v", at, err)
		}
		if err := f.Commit(); err != nil {
			t.Fatal(err)
		}
		holds(t, path)
		if exists(path + ".part.journal") {
			t.Fatal("the journal is left")
		}
	})
	t.Run("another version", func(t *testing.T) {
		path := interrupted(t)
		f := resume(t, path, nil)
		v2 := objectV1
		v2.Name, v2.Version = ndn.MustName("/o/v=2"), 2
		_, err := f.Open(&v2)
		if !errors.Is(err, ErrOtherObject) {
			t.Fatal(err)
		}
		if err := f.Abort(err); err != nil {
			t.Fatal(err)
		}
		holds(t, path)
	})
	t.Run("more than the whole", func(t *testing.T) {
		path := interrupted(t)
		f := resume(t, path, nil)
		if _, err := f.Open(&objectV1); err != nil {
			t.Fatal(err)
		}
		err := f.Write([]byte("more"), consumer.Resume{Segment: 2, Done: n + 4})
		if !errors.Is(err, ErrOtherObject) {
			t.Fatal(err)
		}
		if err := f.Abort(err); err != nil {
			t.Fatal(err)
		}
		holds(t, path)
	})
	t.Run("another file has the name", func(t *testing.T) {
		path := interrupted(t)
		if err := os.WriteFile(path, bytes.ToUpper(all), 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := ResumeFile(t.Context(), path, "all", sha256.New())
		if err != nil {
			t.Fatal(err)
		}
		if at, err := f.Open(&objectV1); err != nil || at.Done != 0 || f.Lost() != n {
			t.Fatalf("goes on at %+v with %d lost, %v", at, f.Lost(), err)
		}
		if err := f.Abort(errors.New("over")); err != nil {
			t.Fatal(err)
		}
	})
}
