package configure

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster/wire"
)

func imageAccounts() accountFiles {
	return accountFiles{
		passwd:  "root:x:0:0:root:/root:/bin/bash\nslurm:x:64030:64030::/:/usr/sbin/nologin\n# a remark\nodd line",
		group:   "root:x:0:\nusers:x:100:root\nslurm:x:64030:",
		shadow:  "root:*:19000:0:99999:7:::\n",
		gshadow: "",
	}
}

func drawUsers(t *rapid.T) []wire.Account {
	picked := rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 0, 8, rapid.ID).Draw(t, "users")
	var list []wire.Account
	for _, n := range picked {
		list = append(list, wire.Account{
			Name: fmt.Sprintf("u%02d", n), UID: 20000 + n, GID: 20000 + n,
			FullName: rapid.String().Draw(t, "full name"),
		})
	}
	return list
}

func had(list []wire.Account) map[string]int {
	m := map[string]int{}
	for _, u := range list {
		m[u.Name] = u.UID
	}
	return m
}

// Whatever the order of comings and goings: the image's lines stay, exactly
// the wanted users are there, each once, and every line has its fields.
func TestMergeAccounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		image := imageAccounts()
		now := image
		var before []wire.Account
		for range rapid.IntRange(1, 4).Draw(t, "generations") {
			want := drawUsers(t)
			merged, err := now.merge(want, had(before), "/bin/bash")
			if err != nil {
				t.Fatal(err)
			}
			again, err := merged.merge(want, had(want), "/bin/bash")
			if err != nil || again != merged {
				t.Fatalf("not idempotent: %v\n%s\n%s", err, merged.passwd, again.passwd)
			}
			for _, f := range []struct {
				got, image string
				fields     int
			}{
				{merged.passwd, image.passwd, 7}, {merged.group, image.group, 4},
				{merged.shadow, image.shadow, 9}, {merged.gshadow, image.gshadow, 4},
			} {
				if !strings.HasPrefix(f.got, f.image) {
					t.Fatalf("the image's lines changed: %q", f.got)
				}
				added := strings.Split(strings.Trim(strings.TrimPrefix(f.got, f.image), "\n"), "\n")
				if len(want) == 0 {
					continue
				}
				if len(added) != len(want) {
					t.Fatalf("%d lines for %d users: %q", len(added), len(want), added)
				}
				for _, l := range added {
					p := strings.Split(l, ":")
					if len(p) != f.fields || !slices.ContainsFunc(want, func(u wire.Account) bool { return u.Name == p[0] }) {
						t.Fatalf("bad line %q", l)
					}
				}
			}
			now, before = merged, want
		}
	})
}

func TestMergeRefusesWhatIsTaken(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]wire.Account{
		"name":         {Name: "slurm", UID: 20000, GID: 20000},
		"group name":   {Name: "users", UID: 20000, GID: 20000},
		"number":       {Name: "alice", UID: 64030, GID: 20000},
		"group number": {Name: "alice", UID: 20000, GID: 64030},
	} {
		if _, err := imageAccounts().merge([]wire.Account{u}, nil, "/bin/sh"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	twice := []wire.Account{{Name: "a", UID: 20000, GID: 20000}, {Name: "b", UID: 20000, GID: 20001}}
	if _, err := imageAccounts().merge(twice, nil, "/bin/sh"); err == nil {
		t.Error("two users of one number")
	}
}

func TestBlock(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-z #=]{0,9}\n){0,5}`).Draw(t, "text")
		first := rapid.StringMatching(`([a-z=]{1,9}\n){1,3}`).Draw(t, "first")
		second := rapid.StringMatching(`([a-z=]{1,9}\n){1,3}`).Draw(t, "second")
		one := withBlock(text, first)
		if !strings.HasPrefix(one, text) || !strings.Contains(one, first) {
			t.Fatalf("%q", one)
		}
		if again := withBlock(one, first); again != one {
			t.Fatalf("not idempotent: %q", again)
		}
		if two := withBlock(one, second); two != withBlock(text, second) {
			t.Fatalf("something of the first stays: %q", two)
		}
		if back := withBlock(one, ""); back != text {
			t.Fatalf("%q instead of %q", back, text)
		}
	})
	if got := withBlock("no end of line", "a=b"); got != "no end of line\n"+blockBegin+"\na=b\n"+blockEnd+"\n" {
		t.Errorf("%q", got)
	}
}

func TestParseSinfo(t *testing.T) {
	t.Parallel()
	got := parseSinfo("n01 idle\nn01 idle\nn02 mixed#\nn03 down*\nn04 idle*\nn05 drained\nhead unknown*\nbroken line here\nn06 (null)\n\nn07 ALLOCATED+\n")
	want := map[string]string{
		"n01": "idle", "n02": "mixed", "n03": "down", "n04": "unresponsive", "n05": "drained",
		"head": "unresponsive", "n07": "allocated",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v instead of %v", got, want)
	}
	for state, ok := range map[string]bool{"idle": true, "mixed": true, "allocated": true, "completing": true, "down": false, "unresponsive": false, "": false, "future": false, "drained": false} {
		if usable(state) != ok {
			t.Errorf("usable(%q) is %v", state, !ok)
		}
	}
}

func TestParseSqueue(t *testing.T) {
	t.Parallel()
	if r, p := parseSqueue("R\nPD\nCG\n PD \nCA\nslurm_load_jobs error: x\n"); r != 2 || p != 2 {
		t.Errorf("%d running, %d pending", r, p)
	}
}

func FuzzParseSinfo(f *testing.F) {
	for _, s := range []string{"n01 idle\n", "n01 down*\nn02 mixed#", "", "\x00 \xff", "slurm_load_partitions error: Unable to contact"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, state := range parseSinfo(text) {
			if !hostName.MatchString(name) || state == "" || strings.ContainsAny(state, " *\n") {
				t.Fatalf("%q: %q", name, state)
			}
		}
		r, p := parseSqueue(text)
		if r < 0 || p < 0 || r+p > strings.Count(text, "\n")+1 {
			t.Fatalf("%d %d", r, p)
		}
	})
}

func TestParseRegistration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2013\t6817\n": "2013 true <nil>",
		"2013\t0\n":    "2013 false <nil>",
	} {
		id, ok, err := parseRegistration(text)
		if got := fmt.Sprint(id, ok, err); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
	for _, text := range []string{"", "x y", "1", "1 2 3"} {
		if _, _, err := parseRegistration(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestFirewallRules(t *testing.T) {
	t.Parallel()
	rules := firewallRules(config())
	for _, want := range []string{
		"policy drop", `iifname { "lo", "msg0" } accept`, `iifname "mgmt0" tcp dport 22 accept`,
		`iifname "mgmt0" tcp flags & (syn | rst | ack) != syn accept`, `iifname { "lo", "msg0" } notrack`,
		"ct state established,related accept", "delete table inet muster",
	} {
		if !strings.Contains(rules, want) {
			t.Errorf("no %q in\n%s", want, rules)
		}
	}
	if strings.Contains(rules, `iifname "mgmt0" accept`) {
		t.Error("everything is open to the management network")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	text := limits(8<<20, ^uint64(0), 1<<30)
	for _, want := range []string{"* - memlock 8192\n", "* hard stack unlimited\n", "* hard nofile 1048576\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	if got := quote("a'b"); got != `'a'\''b'` {
		t.Error(got)
	}
}
