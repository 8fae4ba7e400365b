package provider

import (
	"io"
	"sync"
)

// consoleBufferMost bounds what a reader of a console may be behind.
const consoleBufferMost = 1 << 20

// ConsoleBuffer is what a console printed and its reader has not read yet. Whoever
// prints never waits: what a slow reader misses is lost to it, and it is told.
// The zero value is empty.
type ConsoleBuffer struct {
	mu    sync.Mutex
	wake  sync.Cond
	text  []byte
	ended bool
}

// Print adds text for the reader.
func (p *ConsoleBuffer) Print(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.text) < consoleBufferMost {
		p.text = append(p.text, text...)
		if len(p.text) >= consoleBufferMost {
			p.text = append(p.text, "--- more came than could be read\r\n"...)
		}
	}
	p.wake.Broadcast()
}

// End says that nothing more comes.
func (p *ConsoleBuffer) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.wake.Broadcast()
}

// Ended reports whether nothing more comes.
func (p *ConsoleBuffer) Ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// Read waits for text. After the end there is what was left, then io.EOF.
func (p *ConsoleBuffer) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wake.L = &p.mu
	for len(p.text) == 0 && !p.ended {
		p.wake.Wait()
	}
	if len(p.text) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.text)
	p.text = p.text[n:]
	return n, nil
}
