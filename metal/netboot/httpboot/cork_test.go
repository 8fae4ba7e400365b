package httpboot

import (
	"context"
	"net"
	"net/http"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/connlimit"
)

// The end of a file does not wait in the kernel for more: a connection is corked while
// files are sent, and not afterwards.
func TestCork(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = connlimit.New(l, connlimit.Limits{Total: 1, PerAddress: 1, First: true})
	defer l.Close()
	client, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	is := func(want int) {
		t.Helper()
		raw, err := c.(*connlimit.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		got := -1
		if err := raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK) }); err != nil || got != want {
			t.Errorf("TCP_CORK is %d (%v), not %d", got, err, want)
		}
	}
	r, err := http.NewRequestWithContext(withConn(context.Background(), c), http.MethodGet, "http://muster/file", nil)
	if err != nil {
		t.Fatal(err)
	}
	is(0)
	uncork := cork(r)
	is(1)
	uncork()
	is(0)
	c.Close()
	cork(r)() // a connection that is gone
	other, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://muster/file", nil)
	if err != nil {
		t.Fatal(err)
	}
	cork(other)() // one that is not ours
}
