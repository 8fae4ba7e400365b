package fake

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"io"
	"sync"
)

// lists remembers long lists of hosts as they came and what they inflate to: a
// real node inflates one on its own processor, but thousands of pretended nodes
// that share one processor get the same list each.
type lists struct {
	mu sync.Mutex
	m  map[[sha256.Size]byte][]byte
}

// mostLists bounds what is remembered: a few are in use at a time.
const mostLists = 16

// inflate undoes gzip of an answer with three members, of which the second is
// the list. An answer of another form is inflated as it is.
func (l *lists) inflate(r io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	begin, err := io.ReadAll(io.LimitReader(z, 1<<20))
	if err != nil {
		return nil, err
	}
	rest, err := io.ReadAll(io.LimitReader(in, 16<<20))
	if err != nil {
		return nil, err
	}
	// The last member is not compressed, and short: the list is what is left
	// when it is cut off. Its length is found once, by inflating.
	end := bytes.LastIndex(rest, []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255})
	if end <= 0 {
		return io.MultiReader(bytes.NewReader(begin), again(rest)), nil
	}
	key := sha256.Sum256(rest[:end])
	l.mu.Lock()
	list, ok := l.m[key]
	l.mu.Unlock()
	if !ok {
		if list, err = io.ReadAll(io.LimitReader(again(rest[:end]), 16<<20)); err != nil {
			return io.MultiReader(bytes.NewReader(begin), again(rest)), nil //nolint:nilerr // who reads it finds the same error
		}
		l.mu.Lock()
		if l.m == nil || len(l.m) >= mostLists {
			l.m = map[[sha256.Size]byte][]byte{}
		}
		l.m[key] = list
		l.mu.Unlock()
	}
	return io.MultiReader(bytes.NewReader(begin), bytes.NewReader(list), again(rest[end:])), nil
}

// again inflates what is left.
func again(b []byte) io.Reader {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return broken{err}
	}
	return z
}

// broken fails to be read.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
