package supervisor

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

// guestPort is what a guest wrote, and what it hears.
type guestPort struct {
	io.Reader
	bytes.Buffer
}

func (p *guestPort) Read(b []byte) (int, error) { return p.Reader.Read(b) }

// Only a line that ends with the word asks, whatever was on the line before; the task is given once.
func TestAsks(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{"task\n": true, "\x00\xfftask\r\n": true, "\n": false, "ask\n": false, "\r\n": false, "task \n": false, "": false, "task": false} {
		if got := asks([]byte(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
	k := &task{text: []byte(`{"token":"secret"}`)}
	p := &guestPort{Reader: strings.NewReader(strings.Repeat("noise", 1000) + "\nxtask\n\ntask\n")}
	k.answer(p, func() time.Time { return time.Unix(1e9, 0) })
	lines := strings.Split(strings.TrimSpace(p.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "secret") || !strings.Contains(lines[0], "2001-09-09T01:46:40Z") || strings.Contains(lines[1], "secret") || !k.given() {
		t.Errorf("%q", lines)
	}
}

// What was printed is kept to its end, and what a reader did not take is for the next.
func TestConsoleKeeps(t *testing.T) {
	t.Parallel()
	c := newConsole()
	c.add([]byte("lost"))
	c.add(bytes.Repeat([]byte("x"), kept-1))
	c.add([]byte("y"))
	got := c.take()
	if len(got) != kept || got[kept-1] != 'y' || got[0] != 'x' {
		t.Errorf("%d bytes, %.5q", len(got), got)
	}
	c.add([]byte("b"))
	c.back([]byte("a"))
	if got := string(c.take()); got != "ab" {
		t.Error(got)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"do":"status"}`))
	f.Add([]byte(`{"do":"command","command":"query-status","arguments":{"a":[1]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parseRequest(b); err == nil && (r.Do == doCommand) != (r.Command != "") && r.Do == doCommand {
			t.Errorf("%+v", r)
		}
	})
}

func FuzzAsks(f *testing.F) {
	f.Add([]byte("task\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if asks(b) && !bytes.Contains(b, []byte(askTask)) {
			t.Errorf("%q", b)
		}
	})
}

// What QEMU says is written to a bound, and it never waits.
func TestComplaints(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w, done, err := complaints(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(bytes.Repeat([]byte("x"), 4*maxComplaints)); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	<-done
	if b.Len() != maxComplaints {
		t.Errorf("%d bytes are written", b.Len())
	}
}
