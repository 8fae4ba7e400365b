package web

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// cable is a connection as a Server has it, the client's end of it, and a file of n bytes.
func cable(t *testing.T, n int) (*counted, net.Conn, *os.File, []byte) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = Limit(l, Limits{Connections: 1, PerSource: 1})
	defer l.Close()
	client, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, n)
	if _, err := rand.NewChaCha8([32]byte{}).Read(want); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, want, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); client.Close(); f.Close() })
	return c.(*counted), client, f, want
}

// A part of a file arrives as it is, with a seat and without; so does one that ends early.
func TestFilesAreSent(t *testing.T) {
	t.Parallel()
	const n = 6 << 20 // more than a socket takes at once
	for _, taken := range []int{0, seats} {
		c, client, f, want := cable(t, n)
		for range taken {
			c.sender.seats <- struct{}{}
		}
		if _, err := f.Seek(5, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		got := make(chan []byte)
		go func() {
			b, _ := io.ReadAll(client)
			got <- b
		}()
		first, err := io.CopyN(c, f, n-1000)
		if err != nil || first != n-1000 {
			t.Fatalf("%d taken: %d, %v", taken, first, err)
		}
		rest, err := io.CopyN(c, f, n) // the file has less
		if rest != 995 || !errors.Is(err, io.EOF) {
			t.Errorf("%d taken: the rest: %d, %v", taken, rest, err)
		}
		c.Close()
		if b := <-got; !bytes.Equal(b, want[5:]) {
			t.Errorf("%d taken: %d bytes came, and not those of the file", taken, len(b))
		}
		if len(c.sender.seats) != taken {
			t.Errorf("%d seats are taken afterwards, not %d", len(c.sender.seats), taken)
		}
	}
}

// Who takes nothing in is given up at the deadline, and who is closed is let go of.
func TestSendingEnds(t *testing.T) {
	t.Parallel()
	const n = 32 << 20
	c, _, f, _ := cable(t, n)
	if err := c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, _, err := c.sender.send(f, n); ended <- err }()
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a client that takes nothing is waited for")
	}
	d, _, g, _ := cable(t, n)
	go func() { _, _, err := d.sender.send(g, n); ended <- err }()
	time.Sleep(50 * time.Millisecond)
	d.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("all was sent to a connection that was closed")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a connection that was closed is waited for")
	}
}
