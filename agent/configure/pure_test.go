package configure

import (
	"fmt"
	"maps"
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
			merged, refused := now.merge(want, had(before), "/bin/bash")
			if len(refused) > 0 {
				t.Fatal(refused)
			}
			again, refused := merged.merge(want, had(want), "/bin/bash")
			if len(refused) > 0 || again != merged {
				t.Fatalf("not idempotent: %v\n%s\n%s", refused, merged.passwd, again.passwd)
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
		if _, refused := imageAccounts().merge([]wire.Account{u}, nil, "/bin/sh"); refused[u.Name] == nil {
			t.Errorf("%s: no error", name)
		}
	}
	twice := []wire.Account{{Name: "a", UID: 20000, GID: 20000}, {Name: "b", UID: 20000, GID: 20001}}
	if _, refused := imageAccounts().merge(twice, nil, "/bin/sh"); len(refused) != 1 {
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
	got := parseSinfo("n01|IDLE+DYNAMIC_NORM|10.128.0.10|1|900|none|\nn01|idle|10.128.0.10|1|900|none|\n" +
		"n02|mixed+planned|10.128.0.11|4|3000|none|\nn03|down+dynamic_norm+not_responding|x|1|1|Not responding|\n" +
		"n04|idle+not_responding|x|1|1|(null)|\nn05|idle+drain|x|1|1|muster: a|b|\nhead|unknown+not_responding|x|1|1|none|\n" +
		"broken line here\nn06|(null)|x|1|1|none|\n\nn07|allocated+drain|x|1|1|none|\nn08|future+dynamic_norm|x|1|1|none|\n" +
		"n09|idle+completing|x|1|1|none|\nn10|down+drain|x|1|1|muster: machine lost|\nn11|down+drain+completing|x|1|1|none|\n")
	want := map[string]string{
		"n01": "idle", "n02": "mixed", "n03": "down*", "n04": "idle*", "n05": "drained", "head": "unknown*",
		"n07": "draining", "n09": "completing", "n10": "drained", "n11": "draining",
	}
	if fmt.Sprint(words(got)) != fmt.Sprint(want) {
		t.Errorf("%v instead of %v", words(got), want)
	}
	if n := got["n05"]; n.reason != "muster: a|b" || !got["n08"].future() || got["n02"].cpus != 4 || got["n02"].memory != 3000 || got["n02"].addr != "10.128.0.11" {
		t.Errorf("%+v", got)
	}
	for state, ok := range map[string]bool{"idle": true, "mixed": true, "allocated": true, "completing": true, "down": false, "idle*": false, "": false, "future": false, "drained": false} {
		if usable(state) != ok {
			t.Errorf("usable(%q) is %v", state, !ok)
		}
	}
}

func TestParseScontrol(t *testing.T) {
	t.Parallel()
	got := parseScontrol("NodeName=n01 Arch=x86_64 CPUTot=4 NodeAddr=10.128.0.10 RealMemory=900 State=IDLE+DYNAMIC_NORM ThreadsPerCore=1\n" +
		"NodeName=n02 State=DOWN*+DRAIN+DYNAMIC_NORM Partitions=main   Reason=muster: machine lost [root@2026-11-21T11:44:42]\n" +
		"NodeName=n03 State=IDLE+NOT_RESPONDING X=1\nNodeName=n04 State=FUTURE+DYNAMIC_NORM\nNo nodes in the system\nNodeName=;x State=IDLE\n")
	if want := map[string]string{"n01": "idle", "n02": "drained*", "n03": "idle*"}; fmt.Sprint(words(got)) != fmt.Sprint(want) {
		t.Errorf("%v instead of %v", words(got), want)
	}
	if n := got["n01"]; n.cpus != 4 || n.memory != 900 || n.addr != "10.128.0.10" || got["n02"].reason != reasonLost || !got["n04"].future() {
		t.Errorf("%+v", got)
	}
}

func TestParseSqueue(t *testing.T) {
	t.Parallel()
	text := "slurm_load_jobs error: x\n#7|20000|alice|RUNNING|2|n[01-02]|2026-03-01T10:00:00|1:00:00|None|a|b\n" +
		"#12_[4-9]|20001|bob|PENDING|1||N/A|UNLIMITED|Priority|sweep\n#8|0|root|COMPLETING|1|n03|2026-03-01T10:00:01|UNLIMITED|None|x\n" +
		"#|1|a|RUNNING|1||||None|no number\n"
	q := parseSqueue(text, "#", func(uid int) bool { return uid == 20000 })
	if q.running != 2 || q.pending != 1 || fmt.Sprint(q.active) != "[7 8]" || fmt.Sprint(q.strangers) != "[12_[4-9]]" {
		t.Errorf("%+v", q)
	}
	if len(q.list) != 3 || q.list[0].ID != "12_[4-9]" || q.list[2].Name != "a|b" || q.list[2].Count != 2 || q.list[2].Started.IsZero() || q.list[0].Reason != "Priority" {
		t.Errorf("%+v", q.list)
	}
	// What runs is told before what waits, and the newest first.
	var b strings.Builder
	for i := range 1000 {
		state := "PENDING"
		if i < 50 {
			state = "RUNNING"
		}
		fmt.Fprintf(&b, "#%d|20000|alice|%s|1|n01|N/A|1:00|None|j\n", i+1, state)
	}
	q = parseSqueue(b.String(), "#", nil)
	if len(q.list) != wire.MaxJobs || q.list[0].ID != "1000" || q.list[wire.MaxJobs-1].ID != "1" || q.running != 50 || q.pending != 950 || q.strangers != nil {
		t.Errorf("%d jobs, %+v", len(q.list), q.list[0])
	}
}

// A name that holds whole lines is one job's name.
func TestForgedJobs(t *testing.T) {
	t.Parallel()
	mark := newMark()
	text := mark + "37|20000|alice|PENDING|1||N/A|1:00|Priority|x\n99|20001|bob|RUNNING|2|n[01-02]|N/A|1:00|None|forged\n" +
		mark + "36|20000|alice|RUNNING|1|n01|N/A|1:00|None|job-AAAA|35|20001|bob|RUNNING|1|n01|N/A|1:00|None|y\n"
	q := parseSqueue(text, mark, nil)
	if len(q.list) != 2 || q.running != 1 || q.pending != 1 || q.list[0].ID != "37" || q.list[1].ID != "36" {
		t.Errorf("%+v", q)
	}
	if newMark() == mark {
		t.Error("two questions have one mark")
	}
}

func FuzzParseSlurm(f *testing.F) {
	for _, s := range []string{"n01|idle|a|1|1|none|\n", "n01|down+not_responding|||||", "", "\x00 \xff", "slurm_load_partitions error: Unable to contact", "7|20000|alice|RUNNING|2|n|x|1|None|a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		both := words(parseSinfo(text))
		maps.Copy(both, words(parseScontrol(text)))
		for name, state := range both {
			if !hostName.MatchString(name) || state == "" || strings.ContainsAny(state, " \n|") || len(state) > 40 {
				t.Fatalf("%q: %q", name, state)
			}
		}
		q := parseSqueue(text, "|", func(int) bool { return false })
		if q.running+q.pending > strings.Count(text, "|")+1 || len(q.list) > wire.MaxJobs || len(q.active) != q.running || len(q.held) > q.pending {
			t.Fatalf("%+v", q)
		}
		for _, id := range q.held {
			if strings.ContainsAny(id, " ,-") { // it becomes a word of a command
				t.Fatalf("%q", id)
			}
		}
		for _, j := range q.list {
			if len(j.Name) > maxJobText || strings.ContainsAny(j.Name+j.User+j.State, "\n\r\x00") {
				t.Fatalf("%+v", j)
			}
		}
	})
}

func TestFirewallRules(t *testing.T) {
	t.Parallel()
	rules := firewallRules(config(), false)
	for _, want := range []string{
		"policy drop", `iifname "lo" accept`, `iifname "msg0" accept`, `iifname "msg*" accept`, `iifname "mgmt0" jump outside`, "tcp dport 22 accept",
		"tcp flags & (syn | rst | ack) != syn accept", `oifname "mgmt0" meta l4proto udp update @asked`, "@asked accept",
		"delete table inet muster",
	} {
		if !strings.Contains(rules, want) {
			t.Errorf("no %q in\n%s", want, rules)
		}
	}
	if strings.Contains(rules, `iifname "mgmt0" accept`) {
		t.Error("everything is open to the management network")
	}
	if strings.Contains(rules, "ct state") {
		t.Error("connections are tracked, which every message pays for")
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
