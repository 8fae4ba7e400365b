package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/gateway/flow"
	"github.com/muster-hpc/muster/gateway/flow/flowtest"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

const flowsAt = flowtest.GatewayAddress + ":2222"

// straightRig is a rig whose nodes echo.
type straightRig struct {
	*rig
	net  *flowtest.Net // nil: connections do not go through the kernel
	mu   sync.Mutex
	port uint16
}

// newStraight makes one, with a gateway whose kernel lets connections through, or without.
func newStraight(t *testing.T, kernel bool) *straightRig {
	t.Helper()
	return newStraightTo(t, kernel, true)
}

func newStraightTo(t *testing.T, kernel, echo bool) *straightRig {
	t.Helper()
	return newStraightAt(t, kernel, echo, gateway.Limits{}, muster.SystemClock{})
}

func newStraightAt(t *testing.T, kernel, echo bool, limits gateway.Limits, clock muster.Clock) *straightRig {
	t.Helper()
	r := &straightRig{port: 5000}
	if kernel {
		r.net = flowtest.New(t)
	}
	r.rig = newRigAt(t, limits, clock)
	if echo {
		r.echo()
	}
	if kernel {
		r.site.Control.Routed = func(muster.Machine) netip.Addr { return netip.MustParseAddr(flowtest.NodeAddress) }
		r.restart()
	}
	return r
}

// echo has the nodes say something, and then what they are told.
func (r *straightRig) echo() {
	t := r.t
	t.Helper()
	var l net.Listener
	var err error
	if r.net != nil {
		l, err = r.net.Node.Listen(":22")
	} else {
		l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	}
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
			go func() {
				defer c.Close()
				_, _ = io.WriteString(c, "node\n")
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	r.site.Dialer.To(func(muster.Machine) (net.Conn, error) { return (&net.Dialer{}).Dial("tcp4", l.Addr().String()) })
}

// restart ends the gateway and starts another one.
func (r *straightRig) restart() {
	r.t.Helper()
	r.stop()
	at := netip.MustParseAddrPort(flowsAt)
	k, err := flow.Open(r.t.Context(), flow.Config{Table: "muster-doors-test", Listen: at, NS: r.net.Gateway.NS})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = k.Close() })
	r.start(gateway.Config{Flows: k, FlowsAt: at})
}

// ticket asks for one, of the server itself where the client is in a namespace.
func (r *straightRig) ticket(user, target, client string) (muster.DoorTicket, error) {
	who, err := r.site.Store.Authenticate(r.t.Context(), hashOf(r.tokens[user]))
	if err != nil {
		return muster.DoorTicket{}, err
	}
	q := muster.DoorTicketRequest{Target: target}
	if client != "" {
		q.Client = netip.MustParseAddrPort(client)
		q.Seen = q.Client.Addr()
	}
	return r.site.Control.GatewayTicket(r.t.Context(), who, q)
}

// connect comes to a node, as far as its greeting.
func (r *straightRig) connect(user string) (net.Conn, error) {
	if r.net != nil {
		r.mu.Lock()
		r.port++
		client := netip.AddrPortFrom(netip.MustParseAddr(flowtest.ClientAddress), r.port).String()
		r.mu.Unlock()
		t, err := r.ticket(user, "cfd", client)
		if err != nil {
			return nil, err
		}
		if t.Secret != "" || t.Address != flowsAt {
			return nil, errors.New("it does not go through the kernel")
		}
		ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
		defer cancel()
		c, err := r.net.Client.Dial(ctx, client, t.Address)
		if err != nil {
			return nil, err
		}
		return greeted(c, bufio.NewReader(c))
	}
	t, err := r.ticket(user, "cfd", "")
	if err != nil {
		return nil, err
	}
	return r.say(t.Secret)
}

// say connects with a secret.
func (r *straightRig) say(secret string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(r.t.Context(), "tcp4", r.address)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c, "MUSTER-TICKET/1 "+secret+"\n"); err != nil {
		return nil, err
	}
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "SSH-2.0-") {
		return nil, errors.Join(err, errors.New("greeted with "+line))
	}
	if line, err := in.ReadString('\n'); err != nil || line != "OK\n" {
		_ = c.Close()
		return nil, errors.Join(err, errors.New(line))
	}
	return greeted(c, in)
}

func greeted(c net.Conn, in *bufio.Reader) (net.Conn, error) {
	if line, err := in.ReadString('\n'); err != nil || line != "node\n" {
		_ = c.Close()
		return nil, errors.Join(err, errors.New("the node says "+line))
	}
	return c, nil
}

func (r *straightRig) must(user string) net.Conn {
	r.t.Helper()
	c, err := r.connect(user)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// echoes reports whether something comes back of what is sent.
func echoes(c net.Conn, n int) bool {
	go func() { _, _ = c.Write([]byte(strings.Repeat("x", n))) }()
	_, err := io.CopyN(io.Discard, c, int64(n))
	return err == nil
}

// over waits until a connection has ended.
func over(c net.Conn) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, err := c.Write([]byte("x")); err == nil; _, err = c.Write([]byte("x")) {
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return done
}

func eachWay(t *testing.T, f func(t *testing.T, r *straightRig)) {
	t.Helper()
	for name, kernel := range map[string]bool{"kernel": true, "splice": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, newStraight(t, kernel))
		})
	}
}

func TestStraightDoor(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, r *straightRig) {
		r.make("cfd", "alice")
		c := r.must("alice")
		if !echoes(c, 1<<20) {
			t.Fatal("it does not carry")
		}
		// What was sent counts once the client's kernel has said that it is there, which may be after the client has it.
		r.until("the session with its bytes", func() bool {
			sessions, err := r.site.Client(r.tokens["alice"]).GatewaySessions(t.Context(), wire.GatewayQuery{Open: true})
			if err != nil || len(sessions) != 1 || sessions[0].Door != muster.DoorStraight || sessions[0].Token == "" || sessions[0].Node != "n01" {
				t.Fatalf("%+v %v", sessions, err)
			}
			return sessions[0].Received >= 1<<20 && sessions[0].Sent >= 1<<20
		})
		_ = c.Close()
		r.until("the record", func() bool {
			x := r.newest()
			return x.End == muster.GatewayEndClosed && x.Sent >= 1<<20 && x.Received >= 1<<20
		})
		if x := r.newest(); x.Sent > 3<<20 || x.Received > 3<<20 {
			t.Errorf("%+v", x)
		}
		killed := r.must("alice")
		if err := r.root.KillGatewaySession(t.Context(), string(r.newest().ID)); err != nil {
			t.Fatal(err)
		}
		<-over(killed)
		r.until("the record", func() bool { return r.newest().End == muster.GatewayEndKilled })
		r.until("its place", func() bool { return len(r.gateway.Sessions()) == 0 })
		if _, err := r.connect("bob"); muster.CodeOf(err) != muster.EForbidden && muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("who is no user of the cluster: %v", err)
		}
		for _, target := range []string{"127.0.0.1", "cfd:22", "cfd.n09", "-", ""} {
			if _, err := r.ticket("alice", target, ""); err == nil {
				t.Errorf("a ticket to %q", target)
			}
		}
	})
}

func TestTicketsAreUsedOnce(t *testing.T) {
	t.Parallel()
	r := newStraight(t, false)
	r.make("cfd", "bob", "alice")
	x, err := r.ticket("alice", "cfd", "")
	if err != nil {
		t.Fatal(err)
	}
	if x.Address != r.address || x.Node != "n01" || !x.Expires.After(time.Now()) {
		t.Errorf("%+v", x)
	}
	c, err := r.say(x.Secret)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := r.say(x.Secret); err == nil || !strings.Contains(err.Error(), "NO the ticket was used") {
		t.Errorf("used twice: %v", err)
	}
	if _, err := r.say("x"); err == nil || !strings.Contains(err.Error(), "NO the first line is no ticket") {
		t.Error(err)
	}
	if _, err := r.say(strings.Repeat("x", 1000)); err == nil {
		t.Error("a long line is read")
	}
	// It ends between the ticket and the connection.
	x, err = r.ticket("alice", "cfd", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.root.Share(t.Context(), "cfd", wire.ShareRequest{Remove: []string{"alice"}}); err != nil {
		t.Fatal(err)
	}
	if c, err := r.say(x.Secret); err == nil {
		<-over(c) // a right that is gone ends it
	}
	// The administrator of the host has no token that could end.
	if _, err := r.root.GatewayTicket(t.Context(), wire.TicketRequest{Target: "cfd"}); muster.ReasonOf(err) != muster.ReasonNoToken {
		t.Error(err)
	}
}

// Sessions in the kernel outlive the gateway; those that ended while it was away are on record.
func TestARestartedGatewayAdopts(t *testing.T) {
	t.Parallel()
	r := newStraight(t, true)
	r.make("cfd", "alice", "bob")
	stays, goes := r.must("alice"), r.must("bob")
	echoes(stays, 1000)
	r.stop()
	if !echoes(stays, 1000) || !echoes(goes, 10) {
		t.Fatal("a connection ended with the gateway")
	}
	// Bob's is gone before the next one looks.
	k, err := flow.Open(t.Context(), flow.Config{Table: "muster-doors-test", Listen: netip.MustParseAddrPort(flowsAt), NS: r.net.Gateway.NS})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if err := k.Forget(flow.Way{Client: netip.MustParseAddrPort(goes.LocalAddr().String()), Node: netip.MustParseAddr(flowtest.NodeAddress)}); err != nil {
		t.Fatal(err)
	}
	// And one that nobody has on record comes to an end.
	foreign := flow.Way{Client: netip.MustParseAddrPort(flowtest.ClientAddress + ":6000"), Node: netip.MustParseAddr(flowtest.NodeAddress), Mark: flow.MarkDoor | 1}
	if err := k.Add(foreign, time.Minute); err != nil {
		t.Fatal(err)
	}
	nobodys, err := r.net.Client.Dial(t.Context(), foreign.Client.String(), flowsAt)
	if err != nil {
		t.Fatal(err)
	}
	defer nobodys.Close()
	r.restart()
	<-over(nobodys)
	list, err := r.root.GatewaySessions(t.Context(), wire.GatewayQuery{})
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, x := range list {
		if x.User == "alice" && (!x.Open() || x.Sent < 2000) || x.User == "bob" && (x.End != muster.GatewayEndLost || !strings.Contains(x.Text, "at least until")) {
			t.Errorf("%+v", x)
		}
	}
	if !echoes(stays, 1000) {
		t.Error("the adopted one ended")
	}
	if !r.gateway.Kill(sessionOf(list, "alice"), "test") {
		t.Error("it cannot be ended")
	}
	<-over(stays)
	r.until("its record", func() bool {
		list, err := r.root.GatewaySessions(t.Context(), wire.GatewayQuery{Open: true})
		return err == nil && len(list) == 0
	})
}

func sessionOf(list []muster.GatewaySession, user string) muster.GatewaySessionID {
	for _, x := range list {
		if x.User == user {
			return x.ID
		}
	}
	return ""
}

// A client that something translates is given a secret, whatever it says of itself.
func TestAddressesThatDiffer(t *testing.T) {
	t.Parallel()
	r := newStraight(t, true)
	r.make("cfd", "alice")
	who := tokenOf(t, r, "alice")
	for _, q := range []muster.DoorTicketRequest{
		{Client: netip.MustParseAddrPort("10.1.2.3:5000"), Seen: netip.MustParseAddr(flowtest.ClientAddress)},
		{Client: netip.MustParseAddrPort(flowtest.ClientAddress + ":5000")},
		{Client: netip.MustParseAddrPort("[2001:db8::1]:5000"), Seen: netip.MustParseAddr("2001:db8::1")},
		{Client: netip.MustParseAddrPort(flowtest.ClientAddress + ":0"), Seen: netip.MustParseAddr(flowtest.ClientAddress)},
	} {
		q.Target = "cfd"
		x, err := r.site.Control.GatewayTicket(t.Context(), who, q)
		if err != nil || x.Secret == "" {
			t.Errorf("%+v: %+v %v", q, x, err)
		}
	}
}

func tokenOf(t *testing.T, r *straightRig, user string) muster.Actor {
	t.Helper()
	who, err := r.site.Store.Authenticate(t.Context(), hashOf(r.tokens[user]))
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// A way that nobody comes by is on record, and closed.
func TestAKernelTicketThatNobodyUses(t *testing.T) {
	t.Parallel()
	r := newStraight(t, true)
	r.make("cfd", "alice")
	client := flowtest.ClientAddress + ":5000"
	if _, err := r.ticket("alice", "cfd", client); err != nil {
		t.Fatal(err)
	}
	r.until("its end", func() bool { return strings.Contains(r.newest().Text, "no connection came") })
	if c, err := r.net.Client.Dial(t.Context(), client, flowsAt); err == nil {
		_ = c.Close()
		t.Error("the way is open still")
	}
}

func hashOf(token string) [32]byte { return pki.HashToken(token) }
