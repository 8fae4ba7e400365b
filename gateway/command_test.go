package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// ask gives a command at the jump door. It returns what is said, and the status.
func (r *rig) ask(key ssh.Signer, user, command string) (out, complaint string, status int) {
	r.t.Helper()
	c, err := r.dial(user, key)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	return r.askOn(c, command)
}

func (r *rig) askOn(c *ssh.Client, command string) (out, complaint string, status int) {
	r.t.Helper()
	s, err := c.NewSession()
	if err != nil {
		r.t.Fatal(err)
	}
	var said, complained bytes.Buffer
	s.Stdout, s.Stderr = &said, &complained
	err = s.Run(command)
	var exit *ssh.ExitError
	switch {
	case errors.As(err, &exit):
		status = exit.ExitStatus()
	case err != nil:
		r.t.Fatal(err)
	}
	return said.String(), complained.String(), status
}

// ticketByKey is a ticket that the gateway gave to who showed a key.
func (r *rig) ticketByKey(key ssh.Signer, command string) wire.Ticket {
	r.t.Helper()
	out, complaint, status := r.ask(key, "alice", command)
	var x wire.Ticket
	if err := json.Unmarshal([]byte(out), &x); err != nil || status != 0 || complaint != "" {
		r.t.Fatalf("%q, %q, status %d", out, complaint, status)
	}
	return x
}

// Who has a key on record gets a ticket of the gateway itself: once, with the same checks as the server's.
func TestTicketsByKey(t *testing.T) {
	t.Parallel()
	r := newStraight(t, false)
	id := r.make("cfd", "alice")
	key := r.key("alice", "")
	x := r.ticketByKey(key, "ticket cfd")
	if x.Node != "n01" || x.Expires.IsZero() {
		t.Errorf("%+v", x)
	}
	c, err := r.say(x.Secret)
	if err != nil || !echoes(c, 1<<16) {
		t.Fatalf("it does not carry: %v", err)
	}
	if y := r.newest(); y.Door != muster.DoorStraight || y.Fingerprint != ssh.FingerprintSHA256(key.PublicKey()) || y.Token != "" || y.User != "alice" || y.Node != "n01" {
		t.Errorf("on record: %+v", y)
	}
	if _, err := r.say(x.Secret); err == nil {
		t.Error("a ticket was used twice")
	}
	for command, want := range map[string]string{
		"ticket cfx": "did you mean", "ticket 127.0.0.1": "is not a node", "ticket cfd.n09": `no node "n09"`, "ticket cfd:22": "is not a node",
		"ticket": "no shell", "ticket cfd here": "no shell", "ticket cfd 127.0.0.1:1 more": "no shell", "tickets cfd": "no shell", "": "no shell", "true": "no shell",
	} {
		if out, complaint, status := r.ask(key, "alice", command); out != "" || status != 1 || !strings.Contains(complaint, want) {
			t.Errorf("%q: %q, %q, status %d", command, out, complaint, status)
		}
	}
	if out, complaint, _ := r.ask(r.key("bob", ""), "bob", "ticket cfd"); out != "" || !strings.Contains(complaint, "you are not a user of cluster cfd") {
		t.Errorf("bob: %q, %q", out, complaint)
	}
	// Its right ends as those of other doors do.
	if _, err := r.root.RemoveKey(t.Context(), "alice", ssh.FingerprintSHA256(key.PublicKey())); err != nil {
		t.Fatal(err)
	}
	before := r.looks.done()
	<-over(c)
	r.until("the record", func() bool { return r.newest().End == muster.GatewayEndRight })
	r.soon("alice", muster.DoorStraight, before)
	// A closed door gives none, and one that waits is no way round.
	key = r.key("alice", "")
	late := r.ticketByKey(key, "ticket cfd.n01+aero")
	if _, err := r.root.SetDoors(t.Context(), string(id), wire.DoorsRequest{Doors: []string{"jump"}}); err != nil {
		t.Fatal(err)
	}
	if out, complaint, _ := r.ask(key, "alice", "ticket cfd"); out != "" || !strings.Contains(complaint, "the straight door of cluster cfd is closed") {
		t.Errorf("%q, %q", out, complaint)
	}
	if c, err := r.say(late.Secret); err == nil {
		<-over(c)
	}
}

// With a certificate a ticket is had as long as it permits, and its session ends with it.
func TestTicketsByCertificate(t *testing.T) {
	t.Parallel()
	clock := controltest.NewStoppedClock()
	r := newStraightAt(t, false, true, gateway.Limits{}, clock)
	r.make("cfd", "alice")
	ca := r.authority("alice")
	for what, change := range map[string]func(*ssh.Certificate){
		"one command only": critical("force-command", "true"), "permits no forwarding": func(c *ssh.Certificate) { c.Extensions = nil },
	} {
		if out, complaint, _ := r.ask(certified(t, ca, time.Now(), change), "alice", "ticket cfd"); out != "" || !strings.Contains(complaint, what) {
			t.Errorf("%s: %q, %q", what, out, complaint)
		}
	}
	c, err := r.say(r.ticketByKey(certified(t, ca, time.Now(), nil), "ticket cfd").Secret)
	if err != nil {
		t.Fatal(err)
	}
	if x := r.newest(); x.Certificate != "alice@laptop" || x.Serial != 1<<63 {
		t.Errorf("%+v", x)
	}
	r.looked()
	if x := r.newest(); !x.Open() {
		t.Fatalf("it ended too soon: %+v", x)
	}
	clock.Add(2 * time.Hour)
	<-over(c)
	r.until("the record", func() bool { x := r.newest(); return x.End == muster.GatewayEndRight && x.Text != "" })
}

// Where the kernel lets connections through it does so for keys as well.
func TestTicketsByKeyThroughTheKernel(t *testing.T) {
	t.Parallel()
	r := newStraight(t, true)
	r.make("cfd", "alice")
	key := r.key("alice", "")
	// The connection would have to come from where the ticket was asked for, which is another namespace here.
	if x := r.ticketByKey(key, "ticket cfd 192.0.2.77:5000"); x.Secret == "" {
		t.Errorf("the kernel lets another address through: %+v", x)
	}
	if x := r.ticketByKey(key, "ticket cfd 127.0.0.1:5000"); x.Secret != "" || x.Address != flowsAt {
		t.Errorf("%+v", x)
	}
	r.until("its record", func() bool {
		x := r.newest()
		return x.From == "127.0.0.1:5000" && x.Fingerprint != "" && x.Token == ""
	})
	ca := r.authority("alice")
	if x := r.ticketByKey(certified(t, ca, time.Now(), nil), "ticket cfd 127.0.0.1:5001"); x.Secret == "" {
		t.Error("the end of a certificate cannot be kept in the kernel")
	}
}
