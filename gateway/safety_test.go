package gateway_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/store"
	"golang.org/x/crypto/ssh"
)

// raw is a connection that says what it likes.
func (r *rig) raw(say string) net.Conn {
	r.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}} // not the address of users, who would be kept out with strangers
	c, err := d.Dial("tcp4", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	_, _ = io.WriteString(c, say)
	return c
}

// closed waits until the other end has closed a connection.
func closed(t *testing.T, what string, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: it is open", what)
	}
}

// Whoever sends byte after byte has no more time than who sends nothing, at each step before a log-in.
func TestSlowClientsEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{Handshake: time.Second})
	packet := string(binary.BigEndian.AppendUint32(nil, 1024)) // of which byte after byte comes
	for what, begin := range map[string]string{
		"a version": "SSH-2.0-", "a ticket": "MUSTER-TICKET/1 ", "a key exchange": "SSH-2.0-x\r\n" + packet, "nothing yet": "",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := r.raw(begin)
			stop := make(chan struct{})
			defer close(stop)
			go func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
						_, _ = c.Write([]byte("S"))
					}
				}
			}()
			closed(t, what, c)
		})
	}
}

// Connections that were left half open keep nobody out: the oldest of them makes place.
func TestStrangersKeepNobodyOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{})
	r.make("cfd", "alice")
	key := r.key("alice", "")
	open := r.open(muster.DoorJump, "alice", key) // one that is known stays
	first := r.raw("")
	for range 250 { // the listener has 200 places
		r.raw("SSH-2.0-half")
	}
	closed(t, "the oldest", first)
	r.enter("cfd+alice", key)
	if ended(open) {
		t.Error("strangers took the place of a user")
	}
}

// What is longer than it can be is not read to its end.
func TestHugeMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{})
	r.make("cfd", "alice")
	long := strings.Repeat("x", 16<<20)
	for what, say := range map[string]string{
		"version":      "SSH-2.0-" + long,
		"first line":   long,
		"ticket":       "MUSTER-TICKET/1 " + long + "\n",
		"many lines":   strings.Repeat("hello\r\n", 1<<18),
		"packet":       "SSH-2.0-x\r\n\xff\xff\xff\xff" + long,
		"large packet": "SSH-2.0-x\r\n" + string(binary.BigEndian.AppendUint32(nil, 8<<20)) + long,
	} {
		c, err := net.Dial("tcp4", r.address)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(c, say) }()
		closed(t, what, c)
		_ = c.Close()
	}
	r.until("nobody is served", func() bool { return r.figure("muster_gateway_connections_total") >= 6 })
	// A node that greets without an end lets nobody in, and that is all.
	key := r.key("alice", "")
	r.site.Dialer.To(func(muster.Machine) (net.Conn, error) {
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		go func() {
			_, _ = io.WriteString(far, "SSH-2.0-"+long)
			_ = far.Close()
		}()
		return near, nil
	})
	if text := r.nowhere("cfd+alice", key); !strings.Contains(text, "node n01 of cfd lets nobody in") {
		t.Errorf("%q", text)
	}
}

// Whoever has old algorithms alone comes to no key exchange, and proves no key.
func TestOldAlgorithmsAreRefused(t *testing.T) {
	t.Parallel()
	clock := controltest.NewStoppedClock()
	r := newRigAt(t, gateway.Limits{}, clock)
	key := r.key("alice", "")
	try := func(c ssh.Config, keys ...string) error {
		clock.Add(11 * time.Minute) // failures are forgiven
		conn, err := ssh.Dial("tcp", r.address, &ssh.ClientConfig{Config: c, User: "alice", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
			HostKeyCallback: ssh.FixedHostKey(r.gateway.HostKey()), HostKeyAlgorithms: keys})
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	if err := try(ssh.Config{}); err != nil {
		t.Fatal(err)
	}
	all := ssh.InsecureAlgorithms()
	kex := append(all.KeyExchanges, "diffie-hellman-group14-sha256", "diffie-hellman-group16-sha512", "ecdh-sha2-nistp256")
	for _, x := range kex {
		if err := try(ssh.Config{KeyExchanges: []string{x}}); err == nil || !strings.Contains(err.Error(), "no common algorithm") {
			t.Errorf("%s: %v", x, err)
		}
	}
	for _, x := range append(all.Ciphers, ssh.CipherChaCha20Poly1305) {
		if err := try(ssh.Config{Ciphers: []string{x}}); err == nil || !strings.Contains(err.Error(), "no common algorithm") {
			t.Errorf("%s: %v", x, err)
		}
	}
	for _, x := range append(all.MACs, ssh.HMACSHA512) {
		if err := try(ssh.Config{Ciphers: []string{ssh.CipherAES128CTR}, MACs: []string{x}}); err == nil || !strings.Contains(err.Error(), "no common algorithm") {
			t.Errorf("%s: %v", x, err)
		}
	}
	for _, x := range []string{ssh.KeyAlgoRSA, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoECDSA256} {
		if err := try(ssh.Config{}, x); err == nil || !strings.Contains(err.Error(), "no common algorithm") {
			t.Errorf("host key %s: %v", x, err)
		}
	}
}

// The gateway has so many sessions, whoever they belong to.
func TestTheGatewayHasABound(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{Sessions: 2})
	r.make("cfd", "alice", "bob")
	key, bobs := r.key("alice", ""), r.key("bob", "")
	_ = r.open(muster.DoorJump, "alice", key)
	second := r.open(muster.DoorPlain, "alice", key)
	if text := r.nowhere("cfd+bob", bobs); !strings.Contains(text, "the gateway has 2 sessions, which is as many as it takes") {
		t.Errorf("%q", text)
	}
	b, err := r.dial("bob", bobs)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Dial("tcp", "cfd:22"); err == nil || !strings.Contains(err.Error(), "as many as it takes") {
		t.Errorf("%v", err)
	}
	list := r.gateway.Sessions()
	for id, x := range list {
		if x.Door == muster.DoorPlain {
			r.gateway.Kill(id, "test")
		}
	}
	<-second
	r.until("its place", func() bool { return len(r.gateway.Sessions()) == 1 })
	r.until("a session of bob's", func() bool {
		c, err := b.Dial("tcp", "cfd:22")
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// slowFor answers later where a user is known.
type slowFor struct {
	gateway.Site
	user string
	late time.Duration
}

// GatewayKey is that of the site.
func (s slowFor) GatewayKey(ctx context.Context, user string, key ssh.PublicKey) (muster.DoorKey, error) {
	if user == s.user {
		time.Sleep(s.late)
	}
	return s.Site.GatewayKey(ctx, user, key)
}

// How long a refusal takes does not say whether there is such a user: an exact interval of what a known name takes
// longer holds nothing, except where the site is slow on purpose. The names take turns, so that a slow day is slow for both;
// no other test runs beside it.
func TestTimeSaysNothingOfUsers(t *testing.T) { //nolint:paralleltest // it measures time
	for name, late := range map[string]time.Duration{"as it is": 0, "with a leak": 150 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			clock := controltest.NewStoppedClock()
			r := newRigAt(t, gateway.Limits{}, clock)
			r.key("alice", "")
			r.stop()
			r.leak = late
			r.start(gateway.Config{})
			stranger := newKey(t)
			took := map[string][]float64{}
			names := []string{"alice", "nobody"}
			for i := range 30 {
				clock.Add(11 * time.Minute) // earlier failures are forgiven
				for k := range names {
					user := names[(i+k)%2]
					begin := time.Now()
					if _, err := r.dial(user, stranger); err == nil {
						t.Fatal("a stranger came in")
					}
					took[user] = append(took[user], time.Since(begin).Seconds())
				}
			}
			longer, err := stat.HodgesLehmann(took["nobody"], took["alice"], 0.9999)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("a known name takes %.2g s longer (%.2g to %.2g)", longer.Value, longer.Low, longer.High)
			seen := !longer.Holds(0) && (longer.Low > 0.001 || longer.High < -0.001)
			if seen != (late > 0) {
				t.Errorf("a difference is seen: %v", seen)
			}
		})
	}
}

// No door leads to what is no node: to the controllers by which machines are switched, to the server, to this host, to other clusters,
// by whatever name or number. Nothing of it is connected to, or looked up.
func TestDoorsLeadToNodesOnly(t *testing.T) {
	t.Parallel()
	r := newStraight(t, false)
	id := r.make("cfd", "alice")
	r.make("sky", "bob")
	key := r.key("alice", "")
	var bmc netip.Addr
	var machine muster.Machine
	err := r.site.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		nodes, err := tx.Nodes(id)
		if err != nil {
			return err
		}
		if machine, err = tx.Machine(nodes[0].Machine); err != nil {
			return err
		}
		bmc = netip.MustParseAddr("127.0.0.31")
		return tx.PutRegistration(muster.Registration{ID: "bare-01", State: muster.RegistrationApproved,
			NICs: []muster.RegisteredNIC{{MAC: "52:54:00:00:00:01", Use: muster.UseManagement}}, Power: muster.PowerAddress{Kind: muster.PowerIPMI, Address: bmc.String(), User: "admin"}}, "test")
	})
	if err != nil {
		t.Fatal(err)
	}
	var came atomic.Int64
	r.site.Dialer.To(func(m muster.Machine) (net.Conn, error) {
		if m.ID != machine.ID {
			came.Add(1)
		}
		near, far := net.Pipe() // whoever comes here is let in
		t.Cleanup(func() { _ = far.Close() })
		return near, nil
	})
	for _, at := range []string{bmc.String() + ":22", bmc.String() + ":443", bmc.String() + ":623"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", at)
		if err != nil {
			t.Logf("%s is not listened at: %v", at, err)
			continue
		}
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				came.Add(1)
				_ = c.Close()
			}
		}()
	}
	c, err := r.dial("alice", key)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tickets := func() bool {
		_, err := r.ticket("alice", "cfd", "")
		return err == nil
	}
	if !tickets() {
		t.Fatal("no ticket is had at all")
	}
	mine := netip.MustParseAddrPort(r.address).Port()
	for _, host := range []string{"cfd", "cfd.n01", "cfd.n01+aero", string(id)} {
		for _, port := range []uint16{0, 21, 23, 80, 443, 623, 6817, 7777, mine} {
			if conn, err := c.Dial("tcp", net.JoinHostPort(host, fmt.Sprint(port))); err == nil {
				_ = conn.Close()
				t.Errorf("another port of a node: the jump door to %s port %d", host, port)
			}
		}
	}
	for what, hosts := range map[string][]string{
		"a controller":     {bmc.String(), "::ffff:" + bmc.String(), "0x7f00001f", "2130706463", "127.31", "bare-01", "bmc.bare-01", "cfd.bare-01", "bare-01+aero", "redfish"},
		"the server":       {"127.0.0.1", "::1", "localhost", "0.0.0.0", "muster", "server", "cfd.server", "cfd.localhost", r.site.Socket, "169.254.169.254"},
		"another's nodes":  {"sky", "sky.n01", "sky+aero", "sky.n01+aero", "n01", "cfd.n01.sky", "cfd+../sky"},
		"a node's address": {machine.Facts.Management.String(), "cfd." + machine.Facts.Management.String(), string(machine.ID), "cfd." + string(machine.ID)},
		"nothing":          {"", ".", "+", "cfd.", "cfd+", "*", "cfd.*", "cfd\x00", "cfd\n", "cfd.n01 127.0.0.1", "-oProxyCommand=true", "cfd@127.0.0.1", strings.Repeat("a", 70000)},
	} {
		for _, host := range hosts {
			for _, port := range []uint16{22, 443, 623, 7777, 6817, mine} {
				payload := ssh.Marshal(struct {
					Host       string
					Port       uint32
					Origin     string
					OriginPort uint32
				}{host, uint32(port), "127.0.0.1", 1})
				var refused *ssh.OpenChannelError
				if _, _, err := c.OpenChannel("direct-tcpip", payload); !errors.As(err, &refused) {
					t.Errorf("%s: the jump door to %.80q port %d: %v", what, host, port, err)
				}
			}
			if _, err := r.ticket("alice", host, ""); err == nil {
				t.Errorf("%s: a ticket of the server to %.80q", what, host)
			}
			if len(host) > 1000 { // of a user name the client says no more
				continue
			}
			if out, _, status := r.askOn(c, "ticket "+host); out != "" || status == 0 {
				t.Errorf("%s: a ticket of the gateway to %.80q: %q", what, host, out)
			}
			p, err := r.dial(host+"+alice", key)
			if err != nil {
				continue // it is no name of a user
			}
			if login, ok := gateway.ParseLogin(host + "+alice"); ok && login.Plain() {
				if _, _, err := p.OpenChannel("direct-tcpip", nil); err == nil {
					t.Errorf("%s: the plain door to %.80q", what, host)
				}
			}
			_ = p.Close()
		}
	}
	// Nor is a channel of another kind.
	for _, kind := range []string{"direct-streamlocal@openssh.com", "forwarded-tcpip", "tun@openssh.com", "x11", "auth-agent@openssh.com"} {
		if _, _, err := c.OpenChannel(kind, nil); err == nil {
			t.Errorf("a channel %s was had", kind)
		}
	}
	if n := came.Load(); n != 0 {
		t.Errorf("%d connections came to what is no node", n)
	}
}
