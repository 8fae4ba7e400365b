package gateway

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

func TestTickets(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	list := newTickets(func() time.Time { return now })
	at := netip.MustParseAddr
	give := func(user, seen string) secret {
		t.Helper()
		x := ticket{opener: opener{user: user}, expires: now.Add(ticketTime)}
		if seen != "" {
			x.seen = at(seen)
		}
		s, err := list.give(x)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		name, seen, from string
		wait             time.Duration
		ok               bool
	}{
		{"used", "192.0.2.2", "192.0.2.2", 0, true},
		{"another address", "192.0.2.2", "192.0.2.3", 0, false},
		{"by the other protocol", "192.0.2.2", "2001:db8::1", 0, true},
		{"over the host itself", "127.0.0.1", "192.0.2.3", 0, true},
		{"asked for at the host", "", "192.0.2.3", 0, true},
		{"late", "192.0.2.2", "192.0.2.2", ticketTime, false},
	} {
		s := give("alice", c.seen)
		now = now.Add(c.wait)
		x, err := list.take(s, at(c.from))
		if (err == nil) != c.ok || c.ok && x.user != "alice" {
			t.Errorf("%s: %+v %v", c.name, x, err)
		}
		if _, err := list.take(s, at(c.from)); err == nil {
			t.Errorf("%s: taken twice", c.name)
		}
	}
	if _, err := list.take(newSecret(), at("192.0.2.2")); err == nil {
		t.Error("a secret of nobody's")
	}
	for range ticketsOfOne {
		give("alice", "")
	}
	if _, err := list.give(ticket{opener: opener{user: "alice"}, expires: now.Add(ticketTime)}); muster.ReasonOf(err) != muster.ReasonTooMany {
		t.Errorf("one user has them all: %v", err)
	}
	give("bob", "")
	now = now.Add(ticketTime)
	give("alice", "") // those that expired make place
	if len(list.of) != 1 || len(list.per) != 1 {
		t.Errorf("%d tickets of %d users are kept", len(list.of), len(list.per))
	}
}

func FuzzPreamble(f *testing.F) {
	s := newSecret()
	f.Add([]byte(preambleWord + s.String() + "\n"))
	f.Add([]byte(preambleWord + strings.Repeat("A", 44) + "\n"))
	f.Add([]byte("SSH-2.0-x\r\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, ok := parsePreamble(line)
		if ok && preambleWord+s.String()+"\n" != string(line) {
			t.Errorf("%q is read as %s", line, s)
		}
		if !ok && s != (secret{}) {
			t.Errorf("%q leaves something behind", line)
		}
	})
}

func FuzzTicketCommand(f *testing.F) {
	f.Add("ticket cfd.n01+aero 192.0.2.1:5000")
	f.Add("ticket cfd")
	f.Add("ticket  [2001:db8::1%eth0]:1")
	f.Add("scp -t /")
	f.Fuzz(func(t *testing.T, command string) {
		target, from, ok := parseTicketCommand(command)
		if !ok && (target != "" || from.IsValid()) {
			t.Errorf("%q leaves something behind", command)
		}
		if ok && (target == "" || strings.Contains(target, " ") || !strings.HasPrefix(command, ticketCommand+" "+target)) {
			t.Errorf("%q is read as %q, %s", command, target, from)
		}
	})
}
