package configure

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// place is a network namespace: what is done there is done on its thread.
type place struct {
	t     *testing.T
	tid   int
	tasks chan func()
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, tasks: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its namespace
		p.tid = unix.Gettid()
		ready <- unix.Unshare(unix.CLONE_NEWNET)
		for f := range p.tasks {
			f()
		}
	}()
	if err := <-ready; err != nil {
		t.Skip("no network namespace can be made: ", err)
	}
	t.Cleanup(func() { close(p.tasks) })
	return p
}

func (p *place) do(f func()) {
	done := make(chan bool)
	p.tasks <- func() { defer close(done); f() }
	<-done
}

func (p *place) run(stdin, command string) {
	p.t.Helper()
	words := strings.Fields(command)
	p.do(func() {
		cmd := exec.CommandContext(p.t.Context(), words[0], words[1:]...)
		cmd.Stdin = strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			p.t.Errorf("%s: %v: %s", command, err, out)
		}
	})
}

func (p *place) udp(address string) *net.UDPConn {
	p.t.Helper()
	var c net.PacketConn
	var err error
	p.do(func() { c, err = (&net.ListenConfig{}).ListenPacket(p.t.Context(), "udp4", address) })
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	return c.(*net.UDPConn)
}

func (p *place) listen(address string) {
	p.t.Helper()
	p.do(func() {
		l, err := (&net.ListenConfig{}).Listen(p.t.Context(), "tcp4", address)
		if err != nil {
			p.t.Error(err)
			return
		}
		p.t.Cleanup(func() { _ = l.Close() })
	})
}

func (p *place) reaches(address string) bool {
	var err error
	p.do(func() {
		ctx, cancel := context.WithTimeout(p.t.Context(), 400*time.Millisecond)
		defer cancel()
		var c net.Conn
		if c, err = (&net.Dialer{}).DialContext(ctx, "tcp4", address); err == nil {
			_ = c.Close()
		}
	})
	return err == nil
}

// hears reports whether a datagram from one socket comes to another.
func hears(t *testing.T, from, to *net.UDPConn) bool {
	t.Helper()
	word := fmt.Sprint(time.Now().UnixNano())
	if _, err := from.WriteTo([]byte(word), to.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	if err := to.SetReadDeadline(time.Now().Add(400 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, _, err := to.ReadFrom(b)
	return err == nil && string(b[:n]) == word
}

// The kernel takes the rules, and does what they are meant to do: answers come in,
// nothing else does but SSH, and the cluster's own network is open.
func TestFirewallInForce(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("there is no nft")
	}
	node, out := newPlace(t), newPlace(t)
	node.run("", fmt.Sprintf("ip link add mgmt0 up type veth peer name out0 netns %d", out.tid))
	node.run("", fmt.Sprintf("ip link add msg0 up type veth peer name out1 netns %d", out.tid))
	for _, l := range []string{"mgmt0 10.90.0.2", "msg0 10.128.0.2"} {
		dev, address, _ := strings.Cut(l, " ")
		node.run("", "ip address add "+address+"/24 dev "+dev)
	}
	for _, l := range []string{"out0 10.90.0.1", "out1 10.128.0.1"} {
		dev, address, _ := strings.Cut(l, " ")
		out.run("", "ip address add "+address+"/24 dev "+dev)
		out.run("", "ip link set "+dev+" up")
	}
	node.run("", fmt.Sprintf("ip link add msg1 up type veth peer name out2 netns %d", out.tid))
	node.run("", "ip address add 10.144.0.2/24 dev msg1")
	out.run("", "ip address add 10.144.0.1/24 dev out2")
	out.run("", "ip link set out2 up")
	rules := firewallRules(config(), false)
	node.run(rules, "nft -f -")
	node.run(rules, "nft -f -") // and again: they replace themselves

	node.listen("0.0.0.0:22")
	node.listen("0.0.0.0:8080")
	out.listen("10.90.0.1:7700")
	for _, c := range []struct {
		from    *place
		address string
		want    bool
	}{
		{out, "10.90.0.2:22", true},
		{out, "10.90.0.2:8080", false},
		{out, "10.128.0.2:8080", true},
		{out, "10.144.0.2:8080", true},
		{node, "10.90.0.1:7700", true},
	} {
		if got := c.from.reaches(c.address); got != c.want {
			t.Errorf("%s is reached: %v, want %v", c.address, got, c.want)
		}
	}

	asker, other := node.udp("10.90.0.2:0"), node.udp("10.90.0.2:0")
	resolver, stranger := out.udp("10.90.0.1:53"), out.udp("10.90.0.1:0")
	if hears(t, resolver, asker) {
		t.Error("a datagram came that nobody asked for")
	}
	if !hears(t, asker, resolver) || !hears(t, resolver, asker) {
		t.Error("an answer did not come")
	}
	if hears(t, stranger, asker) || hears(t, resolver, other) {
		t.Error("a datagram came that was no answer")
	}
	if !hears(t, out.udp("10.128.0.1:0"), node.udp("10.128.0.2:0")) {
		t.Error("a message of the cluster did not come")
	}
}
