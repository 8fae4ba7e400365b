package launch

import (
	"io"
	"strings"
	"sync"
)

// bounded passes so much on, and swallows the rest: a program that is refused its
// output would end in the middle of a line.
type bounded struct {
	w    io.Writer
	left int64
	cut  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	n := len(p)
	if int64(n) > b.left {
		p, b.cut = p[:b.left], true
	}
	b.left -= int64(len(p))
	if _, err := b.w.Write(p); err != nil {
		return 0, err
	}
	return n, nil
}

// tail keeps the last words.
type tail struct {
	mu   sync.Mutex
	most int
	b    []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - t.most; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

// String is what was kept, on one line, without the rules that mpirun draws.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var words []string
	for _, w := range strings.Fields(strings.ToValidUTF8(string(t.b), "")) {
		if strings.Trim(w, "-=*") != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}
