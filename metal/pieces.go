package metal

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/muster-hpc/muster"
)

// pieceSize is of what a machine fetches and compares at a time: small enough to be
// fetched again, large enough that the list of digests is short.
const pieceSize = 4 << 20

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
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
	}
	d.list = list
	return list, nil
}
