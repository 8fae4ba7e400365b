package connlimit

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
)

type rig struct {
	t  *testing.T
	l  *Listener
	in chan *Conn
}

func newRig(t *testing.T, limits Limits) *rig {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t, New(ln, limits), make(chan *Conn, 100)}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := r.l.Accept()
			if err != nil {
				return
			}
			r.in <- c.(*Conn)
		}
	}()
	return r
}

// connect comes from an address of the loopback range.
func (r *rig) connect(from string) net.Conn {
	r.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(r.t.Context(), "tcp4", r.l.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (r *rig) accepted() *Conn {
	r.t.Helper()
	select {
	case c := <-r.in:
		return c
	case <-time.After(2 * time.Minute):
		r.t.Fatal("not accepted")
		return nil
	}
}

func open(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

func closed(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it is open: %v", err)
	} else if !errors.Is(err, io.EOF) {
		t.Log(err)
	}
}

// Strangers who stay are closed, oldest first, and keep nobody out; who is known stays.
func TestStrangersMakeRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{Total: 4, PerAddress: 3})
	friend := r.connect("127.0.0.2")
	r.accepted().Known("")
	var strangers []net.Conn
	for range 5 {
		strangers = append(strangers, r.connect("127.0.0.3"))
		r.accepted()
	}
	// Three of one address at most, and four in all: the first two were closed.
	closed(t, strangers[0])
	closed(t, strangers[1])
	if !open(friend) || !open(strangers[4]) {
		t.Error("who should have stayed was closed")
	}
	admin := r.connect("127.0.0.4")
	r.accepted().Known("")
	closed(t, strangers[2])
	if !open(admin) || !open(friend) {
		t.Error("the known were closed")
	}
}

func TestTheKnownAreNotClosedForOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{Total: 2, PerAddress: 2})
	a, b := r.connect("127.0.0.2"), r.connect("127.0.0.3")
	first, second := r.accepted(), r.accepted()
	first.Known("")
	second.Known("")
	closed(t, r.connect("127.0.0.4")) // no room
	if !open(a) || !open(b) {
		t.Error("the known were closed")
	}
	_ = first.Close()
	_ = first.Close() // twice is once
	late := r.connect("127.0.0.5")
	r.accepted()
	if !open(late) {
		t.Error("a place that was given back is not there")
	}
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if r.l.total != 2 || len(r.l.of) != 2 || r.l.strangers.Len() != 1 {
		t.Errorf("%d places, %d addresses, %d strangers", r.l.total, len(r.l.of), r.l.strangers.Len())
	}
}

func TestSourceOf(t *testing.T) {
	t.Parallel()
	for a, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1", "fd00::1:2:3:4": "fd00::", "fe80::1%lo": "fe80::",
	} {
		if got := SourceOf(netip.MustParseAddr(a)); got != netip.MustParseAddr(want) {
			t.Errorf("%s: %s", a, got)
		}
	}
}

// Whoever has shown one name from many addresses keeps out nobody: what is beyond the
// bound of one name makes place as strangers do.
func TestOneNameHasItsShare(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{Total: 4, PerAddress: 4, PerName: 2})
	var mine []net.Conn
	var kept []*Conn
	for i := range 4 {
		mine = append(mine, r.connect("127.0.0."+string(rune('2'+i))))
		kept = append(kept, r.accepted())
		kept[i].Known("alice")
	}
	admin := r.connect("127.0.0.9")
	r.accepted().Known("root")
	closed(t, mine[2]) // the first beyond the share of its name
	if !open(mine[0]) || !open(mine[1]) || !open(admin) {
		t.Error("a connection within the share of its name was closed")
	}
	_ = kept[0].Close()
	_ = kept[1].Close()
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if len(r.l.names) != 1 || r.l.names["root"] != 1 {
		t.Errorf("names that are remembered: %v", r.l.names)
	}
}

// Where the first stay, no download is closed for one that comes, and what is refused is
// told.
func TestTheFirstStay(t *testing.T) {
	t.Parallel()
	refused := make(chan struct{}, 10)
	r := newRig(t, Limits{
		Total: 3, PerAddress: 2, First: true, Refused: func() { refused <- struct{}{} },
		Given: func(a netip.Addr) bool { return a != netip.MustParseAddr("127.0.0.9") },
	})
	var first []net.Conn
	for _, from := range []string{"127.0.0.2", "127.0.0.2", "127.0.0.3"} {
		first = append(first, r.connect(from))
		r.accepted()
	}
	// One too many of an address, one too many in all, one from nowhere.
	for _, from := range []string{"127.0.0.2", "127.0.0.4", "127.0.0.9"} {
		closed(t, r.connect(from))
		select {
		case <-refused: // it is told before it is closed
		default:
			t.Errorf("that one from %s is refused is not told", from)
		}
	}
	for i, c := range first {
		if !open(c) {
			t.Errorf("connection %d was closed for a new one", i)
		}
	}
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if r.l.total != 3 || len(r.l.of) != 2 {
		t.Errorf("%d places, %d addresses", r.l.total, len(r.l.of))
	}
}
