package gateway

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

func TestNamesOfDoors(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Login{
		"alice":                   {User: "alice"},
		"cfd+alice":               {User: "alice", Target: muster.DoorTarget{Cluster: "cfd"}},
		"cfd.n03+alice":           {User: "alice", Target: muster.DoorTarget{Cluster: "cfd", Node: "n03"}},
		"cfd+Aero.1+alice":        {User: "alice", Target: muster.DoorTarget{Cluster: "cfd", Project: "Aero.1"}},
		"c-7x2k.n03+sea+jane.doe": {User: "jane.doe", Target: muster.DoorTarget{Cluster: "c-7x2k", Node: "n03", Project: "sea"}},
	} {
		if got, ok := ParseLogin(name); !ok || got != want || got.Plain() != strings.Contains(name, "+") {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	for _, name := range []string{
		"", "+", "+alice", "cfd+", "cfd++alice", "cfd+.x+alice", "a+b+c+alice", "127.0.0.1+alice", "cfd.n01.x+alice", "CFD+alice", "cfd+alice@x", "-J+alice",
		"cfd/sea+alice", "cfd alice", "alice\n", "root;id", strings.Repeat("a", 64) + "+alice", "../x+alice", "Alice",
	} {
		if got, ok := ParseLogin(name); ok {
			t.Errorf("%q is %+v", name, got)
		}
	}
	for _, host := range []string{"127.0.0.1", "::1", "10.0.0.1", "cfd.n01.example.org", "[cfd]", "cfd:22", "", "cfd+", ".cfd", "cfd."} {
		if got, ok := ParseTarget(host); ok {
			t.Errorf("%q is %+v", host, got)
		}
	}
}

// Whatever a stranger sends as a name, what comes of it is made of plain words, and says the same
// when it is written down again.
func FuzzParseLogin(f *testing.F) {
	for _, s := range []string{"alice", "cfd.n03+Sea_1+jane.doe", "a+b+c+d", "127.0.0.1", "cfd+\x00alice", strings.Repeat("+", 9)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		l, ok := ParseLogin(name)
		if !ok {
			if l != (Login{}) {
				t.Errorf("%q is refused and is %+v", name, l)
			}
			return
		}
		again := l.User
		if l.Plain() {
			place := l.Target.Cluster
			if l.Target.Node != "" {
				place += "." + l.Target.Node
			}
			if l.Target.Project != "" {
				place += "+" + l.Target.Project
			}
			again = place + "+" + l.User
		}
		if again != name || !muster.IsUserName(l.User) || strings.ContainsAny(name, " /:@\x00\n[]%*?") {
			t.Errorf("%q is %+v, which is %q", name, l, again)
		}
	})
}

// FuzzJumpTarget: a request for a channel leads to a name of a cluster at port 22, or nowhere.
func FuzzJumpTarget(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x03cfd\x00\x00\x00\x16\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		target, err := jumpTarget(payload)
		if err == nil && (!isLabel(target.Cluster) || target.Node != "" && !isLabel(target.Node)) {
			t.Errorf("%q leads to %+v", payload, target)
		}
		if err != nil && strings.ContainsAny(sentence(err), "\x00\x1b\n\r") {
			t.Errorf("%q is answered with %q", payload, sentence(err))
		}
	})
}
