package metal

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// pieceSize is of what a machine fetches and compares at a time: small enough to be
// fetched again, large enough that the list of digests is short.
const pieceSize = 4 << 20

// Tags are made anew for each boot, while the machine waits for its order.
const (
	mostTagged = 4 << 30 // bytes of a file; of a larger one they would be longer in coming than a machine waits
	taggers    = 4       // at work on one file
)

// pieces has the digests of images' pieces. They are made of a file that was compared
// with its manifest.
type pieces struct {
	mu sync.Mutex
	of map[muster.ImageID]*digests
}

type digests struct {
	mu   sync.Mutex
	list [][]byte
}

func newPieces() *pieces { return &pieces{of: map[muster.ImageID]*digests{}} }

// digest returns the digests of a file's pieces.
func (p *pieces) digest(ctx context.Context, id muster.ImageID, path string) ([][]byte, error) {
	p.mu.Lock()
	d := p.of[id]
	if d == nil {
		d = &digests{}
		p.of[id] = d
	}
	p.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.list != nil {
		return d.list, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list [][]byte
	b := make([]byte, pieceSize)
	for {
		n, err := io.ReadFull(f, b)
		if n > 0 {
			sum := sha256.Sum256(b[:n])
			list = append(list, sum[:])
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err = firstError(err, ctx.Err()); err != nil {
			return nil, err
		}
	}
	d.list = list
	return list, nil
}

// tag makes what proves the pieces of a file to one machine for one boot, and its secret.
// The file is compared with its digests on the way: tags of what has changed since would
// prove the wrong thing.
func (p *pieces) tag(ctx context.Context, id muster.ImageID, path string) (secret []byte, tags [][]byte, err error) {
	list, err := p.digest(ctx, id, path)
	if err != nil {
		return nil, nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	secret = make([]byte, wire.BootSecretSize)
	_, _ = rand.Read(secret) // never fails
	of, err := wire.BootTag(secret)
	if err != nil {
		return nil, nil, err
	}
	tags = make([][]byte, len(list))
	var next atomic.Int64
	errs := make([]error, min(taggers, len(list)))
	var all sync.WaitGroup
	for w := range errs {
		all.Go(func() {
			b := make([]byte, pieceSize)
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= len(list) {
					return
				}
				n, err := f.ReadAt(b, int64(i)*pieceSize)
				if errors.Is(err, io.EOF) {
					err = nil // the last piece is shorter
				}
				if sum := sha256.Sum256(b[:n]); err == nil && !bytes.Equal(sum[:], list[i]) {
					err = muster.Errorf(muster.ECorrupt, "the root of image %s has changed since it was compared with its manifest", id).
						WithHint("muster image verify tells what is wrong; build or import the image again")
				}
				tags[i] = of(i, b[:n])
				errs[w] = firstError(err, ctx.Err())
			}
		})
	}
	all.Wait()
	return secret, tags, firstError(errs...)
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}
