package flow_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster/gateway/flow"
	"github.com/muster-hpc/muster/gateway/flow/flowtest"
)

const (
	door = flowtest.GatewayAddress + ":2222"
	long = 10 * time.Minute
)

type rig struct {
	*flowtest.Net
	t *testing.T
	k *flow.Kernel

	mu           sync.Mutex
	began, ended []flow.Flow
	present      [][]flow.Flow
}

func (r *rig) Present(list []flow.Flow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.present = append(r.present, list)
}

func (r *rig) Began(f flow.Flow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began = append(r.began, f)
}

func (r *rig) Ended(f flow.Flow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, f)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Net: flowtest.New(t), t: t}
	r.open()
	r.watch()
	l, err := r.Node.Listen(":22")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // an echo that says who is there
				defer c.Close()
				_, _ = io.WriteString(c, c.RemoteAddr().String()+"\n")
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return r
}

func (r *rig) config() flow.Config {
	return flow.Config{Table: "muster-doors-test", Listen: netip.MustParseAddrPort(door), NS: r.Gateway.NS}
}

func (r *rig) open() {
	r.t.Helper()
	var err error
	if r.k, err = flow.Open(r.t.Context(), r.config()); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = r.k.Close() })
}

func (r *rig) watch() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.k.Watch(ctx, r, func(err error) { r.t.Log("events:", err) })
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	r.t.Cleanup(stop)
	r.until("the first list", func() bool { return len(r.present) > 0 })
	return stop
}

func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		done := ok()
		r.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(end) {
			r.t.Fatal("it never came: " + what)
		}
	}
}

func way(port uint16, number uint32) flow.Way {
	return flow.Way{Client: netip.AddrPortFrom(netip.MustParseAddr(flowtest.ClientAddress), port), Node: netip.MustParseAddr(flowtest.NodeAddress), Mark: flow.MarkDoor | number}
}

func (r *rig) add(w flow.Way, wait time.Duration) {
	r.t.Helper()
	if err := r.k.Add(w, wait); err != nil {
		r.t.Fatal(err)
	}
}

// connect comes by a way and says one thing.
func (r *rig) connect(w flow.Way) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := r.Client.Dial(ctx, w.Client.String(), door)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(long))
	seen := w.Client
	if w.Source.IsValid() {
		seen = netip.AddrPortFrom(w.Source, seen.Port())
	}
	want := seen.String() + "\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		_ = c.Close()
		return nil, errors.Join(err, errors.New("the node says "+string(got)))
	}
	return c, nil
}

func (r *rig) must(w flow.Way) net.Conn {
	r.t.Helper()
	c, err := r.connect(w)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

func echo(t *testing.T, c net.Conn, n int) {
	t.Helper()
	go func() { _, _ = c.Write([]byte(strings.Repeat("x", n))) }()
	if _, err := io.CopyN(io.Discard, c, int64(n)); err != nil {
		t.Fatal(err)
	}
}

func TestOneWayLetsOneConnectionThrough(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]bool{"the client's address": false, "the gateway's address": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := way(5001, 7)
			r := newRig(t)
			if own {
				var err error
				if w.Source, err = r.k.SourceTo(w.Node); err != nil || w.Source != netip.MustParseAddr("198.51.100.1") {
					t.Fatal(w.Source, err)
				}
			}
			r.letsOneThrough(w)
		})
	}
}

func (r *rig) letsOneThrough(w flow.Way) {
	t := r.t
	t.Helper()
	r.add(w, long)
	if _, err := r.connect(way(5002, 7)); err == nil {
		t.Error("another port of the client came in")
	}
	c := r.must(w)
	r.until("the beginning", func() bool { return len(r.began) == 1 && r.began[0].Way == w })
	if err := r.k.Used(w); err != nil {
		t.Fatal(err)
	}
	echo(t, c, 1<<20)
	list, err := r.k.Flows()
	if err != nil || len(list) != 1 || list[0].Way != w || list[0].Received < 1<<20 || list[0].Sent < 1<<20 {
		t.Errorf("%+v %v", list, err)
	}
	_ = c.Close()
	r.until("the end", func() bool { return len(r.ended) == 1 && r.ended[0].Way == w && r.ended[0].Sent > 1<<20 })
	if _, err := r.connect(w); err == nil {
		t.Error("the way was used twice")
	}
	r.empty()
}

// empty reports that nothing is left of connections that ended.
func (r *rig) empty() {
	r.t.Helper()
	for _, set := range []string{"map ip muster-doors-test nodes", "map ip muster-doors-test marks", "map ip muster-doors-test sources", "set ip muster-doors-test back"} {
		out, err := r.Gateway.Run("nft", append([]string{"list"}, strings.Fields(set)...)...)
		if err != nil || strings.Contains(out, "elements") {
			r.t.Errorf("left behind: %v %s", err, out)
		}
	}
}

func TestAWayEndsUnused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := way(5001, 1)
	r.add(w, 50*time.Millisecond)
	r.until("the timeout", func() bool {
		out, err := r.Gateway.Run("nft", "list", "map", "ip", "muster-doors-test", "nodes")
		return err == nil && !strings.Contains(out, "elements")
	})
	if _, err := r.connect(w); err == nil {
		t.Error("it let a connection in after its time")
	}
	if err := r.k.Forget(w); err != nil {
		t.Fatal(err)
	}
	r.empty()
	r.add(w, long) // and its port can be had again
	r.must(w)
}

func TestAnEndIsHeardAtBothSides(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, other := way(5001, 1), way(5002, 2)
	r.add(w, long)
	r.add(other, long)
	c, d := r.must(w), r.must(other)
	if err := r.k.End(w); err != nil {
		t.Fatal(err)
	}
	r.until("the event", func() bool { return len(r.ended) == 1 && r.ended[0].Way == w })
	_, err := c.Write([]byte("x"))
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the client does not hear of it: %v", err)
	}
	echo(t, d, 1000) // it is the other's that goes on
}

// What is let in survives who let it in, and who comes next finds it.
func TestConnectionsOutliveTheServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := way(5001, 9)
	r.add(w, long)
	c := r.must(w)
	echo(t, c, 1000)
	if err := r.k.Close(); err != nil {
		t.Fatal(err)
	}
	echo(t, c, 1000)
	r.open()
	echo(t, c, 1000)
	list, err := r.k.Flows()
	if err != nil || len(list) != 1 || list[0].Way != w || list[0].Sent < 3000 {
		t.Errorf("%+v %v", list, err)
	}
	if err := flow.Remove(t.Context(), r.config()); err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(time.Second))
	_, _ = c.Write([]byte("x"))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("it goes on without rules")
	}
}

// Neither a node that floods nor a client that has no way is ever in the table of connections.
func TestFloodsAreNotTracked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := way(5001, 1)
	r.add(w, long)
	c := r.must(w)
	count := func() int {
		b := ""
		err := r.Gateway.Do(func() error {
			x, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_count")
			b = string(x)
			return err
		})
		n, convErr := strconv.Atoi(strings.TrimSpace(b))
		if err != nil || convErr != nil {
			t.Fatal(err, convErr)
		}
		return n
	}
	if n := count(); n != 1 {
		t.Fatalf("%d connections are tracked", n)
	}
	for _, flood := range []struct {
		from flowtest.Place
		to   string
	}{{r.Node, flowtest.ClientAddress}, {r.Client, flowtest.GatewayAddress}, {r.Client, flowtest.NodeAddress}} {
		err := flood.from.Do(func() error {
			for _, proto := range []string{"udp4", "tcp4"} {
				for port := range 500 {
					d := net.Dialer{Timeout: 50 * time.Millisecond}
					if x, err := d.Dial(proto, net.JoinHostPort(flood.to, strconv.Itoa(2222+port))); err == nil {
						_, _ = x.Write([]byte("flood"))
						_ = x.Close()
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := count(); n != 1 {
		t.Errorf("a flood made it %d", n)
	}
	echo(t, c, 1000)
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	n := flowtest.New(t)
	c := flow.Config{Table: "muster-doors-test", Listen: netip.MustParseAddrPort(door), NS: n.Gateway.NS}
	if list := flow.Missing(c); len(list) != 0 {
		t.Errorf("nothing is missing, but: %q", list)
	}
	if err := n.Gateway.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("0"), 0o644) }); err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{
		"add table inet fw; add chain inet fw in { type filter hook input priority 0; }; add rule inet fw in ct state established accept",
		"add table ip drops; add chain ip drops f { type filter hook forward priority 0; policy drop; }",
	} {
		if _, err := n.Gateway.Run("nft", rule); err != nil {
			t.Fatal(err)
		}
	}
	list := flow.Missing(c)
	for _, want := range []string{"net.ipv4.ip_forward=1", "table fw follows connections", "chain f of table drops drops"} {
		if !strings.Contains(strings.Join(list, "\n"), want) {
			t.Errorf("%q is not in %q", want, list)
		}
	}
	if _, err := flow.Open(t.Context(), c); err == nil {
		t.Error("it opens where it would break a firewall")
	}
	c.Listen = netip.MustParseAddrPort("127.0.0.1:22")
	if _, err := flow.Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), "others reach") {
		t.Error(err)
	}
}

// Words of the end of a connection that come late take nothing from the next one from its port.
func TestAPortIsUsedAgainAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, later := way(5003, 1), way(5003, 2)
	r.add(first, long)
	r.add(later, long)
	for _, late := range []func(flow.Way) error{r.k.Used, r.k.Forget, r.k.End} {
		if err := late(first); err != nil {
			t.Fatal(err)
		}
	}
	c := r.must(later)
	for _, late := range []func(flow.Way) error{r.k.Used, r.k.Forget, r.k.End} {
		if err := late(first); err != nil {
			t.Fatal(err)
		}
	}
	echo(t, c, 1000)
	if err := r.k.Forget(later); err != nil { // its own is taken
		t.Fatal(err)
	}
	if _, err := r.connect(later); err == nil {
		t.Error("the way is open still")
	}
}
