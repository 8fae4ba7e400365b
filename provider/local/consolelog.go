package local

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster/internal/cleantext"
	"github.com/muster-hpc/muster/provider"
)

// consoleSize bounds each of the two files that keep what a machine printed.
const consoleSize = 256 << 10

// consoleLog keeps what a machine printed: in a file and the one before it, so
// that a restarted server still has it, and it never grows beyond bounds.
type consoleLog struct {
	path string

	mu      sync.Mutex
	readers map[*consoleReader]bool
}

func (l *consoleLog) old() string { return l.path + ".old" }

// add appends lines. What cannot be written is lost: a full disk must not stop
// a machine.
func (l *consoleLog) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
		_, _ = f.WriteString(text)
		st, err := f.Stat()
		_ = f.Close()
		if err == nil && st.Size() > consoleSize {
			_ = os.Rename(l.path, l.old())
		}
	}
	for r := range l.readers {
		r.Print(text)
	}
}

// mark adds a line of the server's own.
func (l *consoleLog) mark(now time.Time, format string, args ...any) {
	l.add(fmt.Sprintf("--- %s %s\r\n", now.Format(time.DateTime), fmt.Sprintf(format, args...)))
}

// remove forgets everything and ends those who read it.
func (l *consoleLog) remove() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, path := range []string{l.path, l.old()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for r := range l.readers {
		r.End()
	}
	return errors.Join(errs...)
}

// read gives what was printed so far, and then what comes.
func (l *consoleLog) read() *consoleReader {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &consoleReader{log: l}
	for _, path := range []string{l.old(), l.path} {
		b, err := os.ReadFile(path)
		if err == nil {
			r.Print(string(b))
		}
	}
	if l.readers == nil {
		l.readers = map[*consoleReader]bool{}
	}
	l.readers[r] = true
	return r
}

// consoleReader is one who reads a console, until the machine is cleaned.
type consoleReader struct {
	provider.ConsoleBuffer
	log *consoleLog
}

// Write goes nowhere: there is nobody to hear.
func (r *consoleReader) Write(p []byte) (int, error) { return len(p), nil }

// Close ends reading.
func (r *consoleReader) Close() error {
	r.log.mu.Lock()
	delete(r.log.readers, r)
	r.log.mu.Unlock()
	r.End()
	return nil
}

// printable makes one message of a machine fit for a terminal: what looks like
// an order to it is taken out, because whoever has the machine wrote it.
func printable(message []byte) string {
	text := strings.TrimRight(string(message), "\n\x00")
	if strings.HasPrefix(text, "<") { // priority, as syslog writes it
		if i := strings.IndexByte(text, '>'); i > 0 && i < 5 {
			text = text[i+1:]
		}
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = cleantext.Line(lines[i])
	}
	return strings.Join(lines, "\r\n    ") + "\r\n"
}
