package gateway_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// What a session says and how it ends comes through the plain door as it is.
func TestPlainDoor(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{})
	id := r.make("cfd", "alice")
	key := r.key("alice", "")
	strangers := make([]ssh.Signer, 20) // an agent with many keys is no attack
	for i := range strangers {
		strangers[i] = newKey(t)
	}
	c, err := r.dial("cfd.n01+aero+alice", append(strangers, key)...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Setenv("LC_X", "y")
	for _, name := range []string{"auth-agent-req@openssh.com", "x11-req"} {
		if ok, err := s.SendRequest(name, true, nil); ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB: more than any window
	var out, wrong bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = bytes.NewReader(data), &out, &wrong
	err = s.Run(`cat; echo "$USER $LC_X" >&2; exit 7`)
	var status *ssh.ExitError
	if !errors.As(err, &status) || status.ExitStatus() != 7 || !bytes.Equal(out.Bytes(), data) || wrong.String() != "alice y\n" {
		t.Errorf("%v; %d bytes; %q", err, out.Len(), wrong.String())
	}
	// A signal reaches it, and what it ends with is a signal.
	if s, err = c.NewSession(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start("exec sleep 600"); err != nil {
		t.Fatal(err)
	}
	_ = s.Signal(ssh.SIGTERM)
	if err := s.Wait(); !errors.As(err, &status) || status.Signal() != "TERM" {
		t.Errorf("ended with %v", err)
	}
	// What the node refuses is refused in its words.
	if _, err := c.Dial("tcp", "localhost:80"); err == nil || !strings.Contains(err.Error(), "the node says no") {
		t.Errorf("a forward: %v", err)
	}
	if _, _, err := c.OpenChannel("tun@openssh.com", nil); err == nil {
		t.Error("a tunnel was passed on")
	}
	r.mu.Lock()
	if slices.Contains(r.asked, "auth-agent-req@openssh.com") || slices.Contains(r.asked, "x11-req") || !slices.Contains(r.asked, "env") {
		t.Errorf("the node was asked for %v", r.asked)
	}
	r.mu.Unlock()
	_ = c.Close()
	r.until("its record", func() bool { return !r.newest().Open() })
	x := r.newest()
	if x.User != "alice" || x.Door != muster.DoorPlain || x.Cluster != id || x.Node != "n01" || x.Login != "alice" || x.End != muster.GatewayEndClosed ||
		x.Received < int64(len(data)) || x.Sent < int64(len(data)) || !strings.HasPrefix(x.From, "127.0.0.1:") || x.Fingerprint != ssh.FingerprintSHA256(key.PublicKey()) {
		t.Errorf("on record: %+v", x)
	}
	keys, err := r.root.Keys(t.Context(), "alice")
	if err != nil || keys[0].Used.IsZero() || keys[0].UsedDoor != muster.DoorPlain || keys[0].UsedFrom != x.From {
		t.Errorf("the use of the key: %+v, %v", keys, err)
	}
}

func (r *rig) newest() muster.GatewaySession {
	list, err := r.root.GatewaySessions(r.t.Context(), wire.GatewayQuery{Page: wire.Page{Limit: 1}})
	if err != nil || len(list) == 0 {
		return muster.GatewaySession{Ended: time.Time{}}
	}
	return list[0]
}

// figure is one that a monitoring system sees, summed.
func (r *rig) figure(name string) (sum float64) {
	for _, m := range r.gateway.Figures() {
		for _, v := range m.Values {
			if m.Name == name {
				sum += v.Value
			}
		}
	}
	return sum
}

// At the jump door the node itself is spoken to, and nothing else is reached.
func TestJumpDoor(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{})
	r.make("cfd", "alice")
	c, err := r.dial("alice", r.key("alice", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.Dial("tcp", "cfd:22")
	if err != nil {
		t.Fatal(err)
	}
	version := make([]byte, 8)
	if _, err := io.ReadFull(raw, version); err != nil || string(version) != "SSH-2.0-" {
		t.Errorf("%q, %v", version, err)
	}
	_ = raw.Close()
	for host, want := range map[string]string{
		"127.0.0.1:22": "is not a node", "localhost:22": "there is no cluster", "cfd:6817": "only port 22", "cfd.n09:22": `no node "n09"`, "cfd+sky:22": "there is no cluster",
		"cfdx:22": "did you mean", "10.90.0.1:22": "is not a node", "cfd.n01.example.org:22": "is not a node",
	} {
		_, err := c.Dial("tcp", host)
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) || !strings.Contains(refused.Message, want) {
			t.Errorf("%s: %v, want %q", host, err, want)
		}
	}
	for _, ask := range []string{"shell", "subsystem"} {
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		var complaint bytes.Buffer
		s.Stderr = &complaint
		var exit *ssh.ExitError
		if ask == "shell" {
			err = s.Shell()
		} else {
			err = s.RequestSubsystem("sftp")
		}
		if err == nil {
			err = s.Wait()
		}
		if ask == "shell" && (!errors.As(err, &exit) || exit.ExitStatus() != 255 || !strings.Contains(complaint.String(), "no shell")) || err == nil {
			t.Errorf("a %s of the gateway: %v, %q", ask, err, complaint.String())
		}
	}
	if _, _, err := c.OpenChannel("x11", nil); err == nil || !strings.Contains(err.Error(), "no shell") {
		t.Errorf("another channel: %v", err)
	}
	if _, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("a port of the gateway was opened")
	}
	// bob is in the project and sees the cluster; he is not one of its users.
	b, err := r.dial("bob", r.key("bob", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Dial("tcp", "cfd:22"); err == nil || !strings.Contains(err.Error(), "you are not a user of cluster cfd") {
		t.Errorf("bob: %v", err)
	}
}

// A node with another key than that on record is not spoken to.
func TestTheGatewayChecksNodes(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{})
	r.make("cfd", "alice")
	r.mu.Lock()
	r.host = newKey(t)
	r.mu.Unlock()
	if text := r.nowhere("cfd+alice", r.key("alice", "")); !strings.Contains(text, "node n01 of cfd lets nobody in") {
		t.Errorf("%q", text)
	}
}

// nowhere is what the plain door says that leads nowhere.
func (r *rig) nowhere(name string, key ssh.Signer) string {
	r.t.Helper()
	c, err := r.dial(name, key)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	s, err := c.NewSession()
	if err != nil {
		r.t.Fatal(err)
	}
	var wrong bytes.Buffer
	s.Stderr = &wrong
	err = s.Run("true")
	var status *ssh.ExitError
	if !errors.As(err, &status) || status.ExitStatus() != 255 {
		r.t.Errorf("%s: %v", name, err)
	}
	if text := wrong.String(); !strings.HasPrefix(text, "muster: ") || strings.Count(text, "\n") != 1 {
		r.t.Errorf("%s: not one sentence: %q", name, text)
	}
	return wrong.String()
}

// A door that leads nowhere says why and what to do, in both doors alike.
func TestDoorsThatLeadNowhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{})
	id := r.make("cfd", "alice")
	key := r.key("alice", "")
	err := r.site.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		c, err := tx.Cluster(id)
		if err != nil {
			return err
		}
		c.Phase, c.Pause = muster.ClusterPausing, &muster.Pause{}
		return tx.PutCluster(c, "test")
	})
	if err != nil {
		t.Fatal(err)
	}
	j, err := r.dial("alice", key)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	_, err = j.Dial("tcp", "cfd:22")
	if err == nil {
		t.Fatal("the jump door leads to a cluster that is pausing")
	}
	for _, text := range []string{r.nowhere("cfd+alice", key), err.Error()} {
		if !strings.Contains(text, "cluster cfd is pausing") || !strings.Contains(text, "muster resume cfd") {
			t.Errorf("%q", text)
		}
	}
	// One that waits says how long.
	made, err := r.root.CreateCluster(t.Context(), client.Create{Format: "yaml", Body: []byte("name: later\nproject: aero\nnodes: 3\nwalltime: 1h\nusers: [alice]")})
	if err != nil {
		t.Fatal(err)
	}
	if text := r.nowhere("later+alice", key); !strings.Contains(text, "cluster later is queued: position 1 in the queue") || !strings.Contains(text, "muster wait later") {
		t.Errorf("%s: %q", made.ID, text)
	}
}

// Whoever is not known hears the same, whatever is wrong, and is kept out after a while.
func TestStrangers(t *testing.T) {
	t.Parallel()
	clock := controltest.NewStoppedClock()
	r := newRigAt(t, gateway.Limits{}, clock)
	r.make("cfd", "alice")
	alice, bob := r.key("alice", ""), r.key("bob", "")
	expired := r.key("alice", "1s")
	r.until("the end of a key", func() bool {
		keys, err := r.root.Keys(t.Context(), "alice")
		return err == nil && slices.ContainsFunc(keys, func(k muster.SSHKey) bool { return k.Expired(time.Now()) })
	})
	var first string
	for i, c := range []struct {
		name string
		key  ssh.Signer
	}{
		{"alice", newKey(t)}, {"nobody", newKey(t)}, {"nobody", alice}, {"alice", bob}, {"cfd+alice", bob}, {"a+b+c+d", alice}, {"alice", expired}, {"", alice}, {"root", alice},
	} {
		_, err := r.dial(c.name, c.key)
		if err == nil {
			t.Fatalf("%q came in", c.name)
		}
		if i == 0 {
			first = err.Error()
		}
		if err.Error() != first {
			t.Errorf("%q hears %q, others %q", c.name, err, first)
		}
	}
	// After the tenth failure nobody of this address is spoken to for a second.
	if _, err := r.dial("alice", newKey(t)); err == nil {
		t.Fatal("a stranger came in")
	}
	r.until("ten failures", func() bool { return r.figure("muster_gateway_refused_total") == 10 })
	if _, err := r.dial("alice", alice); err == nil {
		t.Error("nobody is kept out")
	}
	clock.Add(time.Second)
	c, err := r.dial("alice", alice)
	if err != nil {
		t.Fatalf("kept out for longer: %v", err)
	}
	_ = c.Close()
}

// Silence does not hold a place for ever.
func TestSilenceEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{Handshake: 50 * time.Millisecond})
	quiet, err := net.Dial("tcp4", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	_ = quiet.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if _, err := io.Copy(io.Discard, quiet); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("it is open")
	}
}

func TestSessionsHaveABoundAndCanBeEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{PerUser: 1})
	r.make("cfd", "alice", "bob")
	key := r.key("alice", "")
	first := r.open(muster.DoorJump, "alice", key)
	if text := r.nowhere("cfd+alice", key); !strings.Contains(text, "you have 1 sessions") || !strings.Contains(text, "muster gateway kill") {
		t.Errorf("%q", text)
	}
	_ = r.open(muster.DoorPlain, "bob", r.key("bob", "")) // another user's places are theirs
	mine := r.site.Client(r.site.User("alice", "aero"))
	list, err := mine.GatewaySessions(t.Context(), wire.GatewayQuery{Open: true})
	if err != nil || len(list) != 1 || list[0].User != "alice" || list[0].Sent == 0 {
		t.Fatalf("alice sees %+v, %v", list, err)
	}
	others, err := r.root.GatewaySessions(t.Context(), wire.GatewayQuery{User: "bob"})
	if err != nil || len(others) != 1 {
		t.Fatalf("%+v, %v", others, err)
	}
	if err := mine.KillGatewaySession(t.Context(), string(others[0].ID)); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("alice ends a session of bob: %v", err)
	}
	if err := mine.KillGatewaySession(t.Context(), string(list[0].ID)); err != nil {
		t.Fatal(err)
	}
	<-first
	r.until("its record", func() bool {
		list, err := mine.GatewaySessions(t.Context(), wire.GatewayQuery{})
		return err == nil && list[0].End == muster.GatewayEndKilled && list[0].Text == "ended by alice"
	})
	if err := mine.KillGatewaySession(t.Context(), string(list[0].ID)); muster.ReasonOf(err) != muster.ReasonWrongPhase {
		t.Errorf("ended twice: %v", err)
	}
}

// A door can be closed while others stay open; it says so, and by whom.
func TestClosedDoors(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{})
	id := r.make("cfd", "alice")
	key := r.key("alice", "")
	jump, plain := r.open(muster.DoorJump, "alice", key), r.open(muster.DoorPlain, "alice", key)
	if out, err := r.root.SetDoors(t.Context(), string(id), wire.DoorsRequest{Doors: []string{"jump"}}); err != nil || !slices.Equal(out.Open, []muster.Door{muster.DoorJump}) {
		t.Fatalf("%+v, %v", out, err)
	}
	<-plain
	if text := r.nowhere("cfd+alice", key); !strings.Contains(text, "the plain door of cluster cfd is closed: its owner closed it: open is jump") {
		t.Errorf("%q", text)
	}
	if ended(jump) {
		t.Error("a session in the other door ended, too")
	}
	c, err := r.root.Cluster(t.Context(), string(id))
	if err != nil || !slices.Equal(c.Doors, []muster.Door{muster.DoorJump}) {
		t.Errorf("%v, %v", c.Doors, err)
	}
	if _, err := r.root.SetDoors(t.Context(), string(id), wire.DoorsRequest{Doors: []string{"back"}}); muster.ReasonOf(err) != muster.ReasonBadValue {
		t.Errorf("%v", err)
	}
	if _, err := r.root.SetDoors(t.Context(), string(id), wire.DoorsRequest{}); err != nil {
		t.Fatal(err)
	}
	r.enter("cfd+alice", key)
}

// enter runs a command at the plain door.
func (r *rig) enter(name string, key ssh.Signer) {
	r.t.Helper()
	c, err := r.dial(name, key)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	s, err := c.NewSession()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := s.Run("true"); err != nil {
		r.t.Errorf("%s: %v", name, err)
	}
}

// A client that closes a channel as soon as all has been said has the exit status by then.
func TestStatusComesBeforeTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{})
	r.make("cfd", "alice")
	c, err := r.dial("cfd+alice", r.key("alice", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 20 {
		ch, requests, err := c.OpenChannel("session", nil)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := ch.SendRequest("exec", true, ssh.Marshal(struct{ Command string }{"echo in; exit 7"})); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if b, err := io.ReadAll(ch); err != nil || string(b) != "in\n" {
			t.Fatalf("%q, %v", b, err)
		}
		select {
		case q := <-requests:
			if q.Type != "exit-status" || !bytes.Equal(q.Payload, []byte{0, 0, 0, 7}) {
				t.Errorf("%+v", q)
			}
		default:
			t.Error("all was said, and how it ended was not")
		}
		_ = ch.Close()
	}
}

// Sessions end in which nothing passes, and those that last for long, in every door.
func TestSessionsHaveALength(t *testing.T) {
	t.Parallel()
	for end, limits := range map[muster.GatewayEnd]gateway.Limits{
		muster.GatewayEndIdle: {Idle: time.Hour, Alive: time.Second}, muster.GatewayEndLongest: {Longest: 90 * time.Minute},
	} {
		t.Run(string(end), func(t *testing.T) {
			t.Parallel()
			clock := controltest.NewStoppedClock()
			r := newRigAt(t, limits, clock)
			r.make("cfd", "alice")
			key := r.key("alice", "")
			for _, d := range doors() {
				open := r.open(d, "alice", key)
				time.Sleep(1200 * time.Millisecond) // it was looked at, and kept alive
				clock.Add(59 * time.Minute)
				time.Sleep(3 * 50 * time.Millisecond)
				if ended(open) {
					t.Fatalf("%s: it ended too soon", d)
				}
				clock.Add(31 * time.Minute)
				<-open
				r.until("its record", func() bool { x := r.newest(); return !x.Open() && x.Text != "" })
				if x := r.newest(); x.End != end {
					t.Errorf("%s: %+v", d, x)
				}
			}
		})
	}
}

// open opens a session of cfd that lasts; the channel is closed when it has ended.
func (r *rig) open(d muster.Door, user string, key ssh.Signer) <-chan struct{} {
	r.t.Helper()
	ended := make(chan struct{})
	name := user
	if d == muster.DoorPlain {
		name = "cfd+" + user
	}
	c, err := r.dial(name, key)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	if d == muster.DoorJump {
		raw, err := c.Dial("tcp", "cfd:22")
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := io.ReadFull(raw, make([]byte, 8)); err != nil {
			r.t.Fatal(err)
		}
		go func() {
			_, _ = io.Copy(io.Discard, raw)
			close(ended)
		}()
		return ended
	}
	s, err := c.NewSession()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := s.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := s.Start("echo in; exec sleep 600"); err != nil {
		r.t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		_ = s.Wait()
		close(ended)
	}()
	return ended
}

// doors are those at which a key is shown; the straight one has tests of its own (straightends_test.go).
func doors() []muster.Door { return []muster.Door{muster.DoorJump, muster.DoorPlain} }

func ended(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// When the server stops, sessions end and that is on record; of one that was killed, the next says so.
func TestTheEndOfTheServerIsOnRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, gateway.Limits{})
	r.make("cfd", "alice")
	lost := muster.GatewaySession{ID: "g-lost", User: "alice", Fingerprint: "f", Door: muster.DoorJump, Began: time.Now()}
	if err := r.site.Control.GatewayBegin(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	lost.Received = 5
	if err := r.site.Control.GatewayBytes(t.Context(), []muster.GatewaySession{lost}); err != nil {
		t.Fatal(err)
	}
	if err := r.site.Control.EndLostSessions(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if x := r.newest(); x.End != muster.GatewayEndLost || x.Received != 5 || x.Open() {
		t.Errorf("%+v", x)
	}
	ended := r.open(muster.DoorPlain, "alice", r.key("alice", ""))
	if open := len(r.gateway.Sessions()); open != 1 {
		t.Errorf("%d sessions are open", open)
	}
	if r.figure("muster_gateway_sessions") != 1 || r.figure("muster_gateway_logins_total") != 1 || r.figure("muster_gateway_sent_bytes_total") == 0 {
		t.Errorf("%+v", r.gateway.Figures())
	}
	r.stop()
	<-ended
	if x := r.newest(); x.End != muster.GatewayEndServer {
		t.Errorf("%+v", x)
	}
}
