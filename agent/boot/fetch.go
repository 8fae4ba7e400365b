package boot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// connections is how many pieces are under way at the same time: while one is
// verified, others come in.
const connections = 4

// Fetcher brings a file, piece by piece. A piece that broke off goes on where it
// was; a piece whose digest is wrong makes its source untrusted for good.
type Fetcher struct {
	File    wire.BootFile
	Into    []byte   // of the file's size; a piece that is not whole or not right may be in it for a while
	Sources []Source // the best first
	Clock   muster.Clock
	// Say is told of what goes wrong; nil: nobody is.
	Say func(format string, args ...any)

	got atomic.Int64
	mu  sync.Mutex
	bad map[int]bool // sources that gave something else
}

// errDigest is the mark of an error that trying again does not mend.
var errDigest = errors.New("digest")

// Got is how many bytes are there and verified.
func (f *Fetcher) Got() int64 { return f.got.Load() }

// Run fetches all pieces. It tries as long as ctx allows; an ECorrupt error means
// that no source is left which gives what the order says.
func (f *Fetcher) Run(ctx context.Context) error {
	if f.Say == nil {
		f.Say = func(string, ...any) {}
	}
	if int64(len(f.Into)) != f.File.Size {
		return muster.Errorf(muster.EInternal, "there is room for %d bytes, and the image has %d", len(f.Into), f.File.Size)
	}
	if len(f.Sources) == 0 {
		return muster.Errorf(muster.EInvalid, "no server is named that has the image")
	}
	f.bad = map[int]bool{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next atomic.Int64
	errs := make([]error, min(connections, len(f.File.Pieces)))
	var all sync.WaitGroup
	for w := range errs {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(f.File.Pieces) {
					return
				}
				if errs[w] = f.piece(ctx, i); errs[w] != nil {
					cancel() // the others stop, too
					return
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs { // the cause rather than what stopped for it
		if errors.Is(err, errDigest) {
			return err
		}
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errs...)
}

// piece fetches and verifies one piece, in the place where it stays.
func (f *Fetcher) piece(ctx context.Context, i int) error {
	from := int64(i) * f.File.Piece
	to := min(from+f.File.Piece, f.File.Size)
	p := pauses{first: 100 * time.Millisecond, most: 10 * time.Second, clock: f.Clock}
	buf := window{b: f.Into[from:to]}
	at := -1 // source of what is in buf
	for turn := 0; ; turn++ {
		s, err := f.source(turn, at)
		if err != nil {
			return err
		}
		if s != at {
			buf.n = 0 // pieces of two sources are not mixed: one may be bad
			at = s
		}
		had := buf.n
		err = f.Sources[s].Read(ctx, f.File.Path, from+int64(had), to, &buf)
		if buf.n > had {
			p.reset()
		}
		if buf.n == len(buf.b) {
			if sum := sha256.Sum256(buf.b); bytes.Equal(sum[:], f.File.Pieces[i]) {
				f.got.Add(to - from)
				return nil
			}
			f.distrust(s, i)
			buf.n = 0
			at = -1
			continue
		}
		if ctx.Err() != nil {
			return f.gaveUp(ctx, err)
		}
		f.Say("image: piece %d of %d: %s", i+1, len(f.File.Pieces), describe(orCut(err)))
		if muster.CodeOf(err) == muster.EForbidden || buf.n == had {
			at = -1 // perhaps another one has it
		}
		if p.wait(ctx) != nil {
			return f.gaveUp(ctx, err)
		}
	}
}

// window is filled from its beginning. What is too much is lost.
type window struct {
	b []byte
	n int
}

func (w *window) Write(b []byte) (int, error) {
	w.n += copy(w.b[w.n:], b)
	return len(b), nil
}

// ReadFrom makes the kernel put what arrives where it stays: io.Copy would have it copied
// once more.
func (w *window) ReadFrom(r io.Reader) (int64, error) {
	had := w.n
	for w.n < len(w.b) {
		n, err := r.Read(w.b[w.n:])
		w.n += n
		if err == io.EOF {
			break
		}
		if err != nil {
			return int64(w.n - had), err
		}
	}
	return int64(w.n - had), nil
}

func orCut(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (f *Fetcher) gaveUp(ctx context.Context, last error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return muster.Errorf(muster.EUnavailable, "the image does not arrive: %d of %d bytes are here", f.Got(), f.File.Size).
		WithHint("look whether the server can be reached from this machine's network").Wrap(orCut(last))
}

// source picks one that is trusted, the same again where it did well.
func (f *Fetcher) source(turn, same int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if same >= 0 && !f.bad[same] {
		return same, nil
	}
	for k := range len(f.Sources) {
		if s := (turn + k) % len(f.Sources); !f.bad[s] {
			return s, nil
		}
	}
	return 0, muster.Errorf(muster.ECorrupt, "the image that arrives is not the one of the task: digests differ").
		WithHint("muster image verify shows whether the server's copy is whole; if it is, something changes bytes on the way").Wrap(errDigest)
}

func (f *Fetcher) distrust(s, piece int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.bad[s] {
		f.bad[s] = true
		f.Say("image: piece %d from %s is not what the task says: nothing more is taken from there", piece+1, f.Sources[s].Name())
	}
}
