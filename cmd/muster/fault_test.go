package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// failure is one thing that goes wrong under a working cluster, and what must
// come of it.
type failure struct {
	name string // as in docs/operators/operate.md
	// short ones run with every test; the others with MUSTER_FAULTS=all.
	short bool
	// inflict breaks the machines of these nodes. What it returns waits for the
	// end of it, if there is one.
	inflict func(s *faultSite, machines []string) (wait func())
	victims []string
	// replaced: each victim gets another machine. Otherwise it keeps its own.
	replaced bool
	// rebooted: the machine stays and its node boots again.
	rebooted bool
	// limit until the node takes jobs again.
	limit time.Duration
	// keeps: even the job on the node goes on.
	keeps bool
	// sees is what a cluster shows meanwhile, for the table: found, not given.
}

func failures() []failure {
	each := func(f func(s *faultSite, machine string)) func(*faultSite, []string) func() {
		return func(s *faultSite, machines []string) func() {
			for _, m := range machines {
				f(s, m)
			}
			return func() {}
		}
	}
	cut := func(d time.Duration) func(*faultSite, []string) func() {
		return func(s *faultSite, machines []string) func() { return s.cut(machines[0], d) }
	}
	n03 := []string{"n03"}
	return []failure{
		{name: "the machine dies (its first process is killed)", short: true, victims: n03, replaced: true, limit: 20 * time.Second,
			inflict: each(func(s *faultSite, m string) { s.kill(m) })},
		{name: "everything in the machine stops (SIGSTOP)", victims: n03, replaced: true, limit: 45 * time.Second,
			inflict: each(func(s *faultSite, m string) { s.signal(m, "", unix.SIGSTOP) })},
		{name: "the machine freezes", short: true, victims: n03, replaced: true, limit: 45 * time.Second,
			inflict: each(func(s *faultSite, m string) { s.freeze(m) })},
		{name: "two machines die at once", victims: []string{"n03", "n04"}, replaced: true, limit: 40 * time.Second,
			inflict: each(func(s *faultSite, m string) { s.kill(m) })},
		{name: "cut off for 5 s", victims: n03, keeps: true, limit: 30 * time.Second, inflict: cut(5 * time.Second)},
		{name: "cut off for 20 s, then back", victims: n03, replaced: true, limit: 60 * time.Second, inflict: cut(20 * time.Second)},
		{name: "cut off for 120 s, then back", victims: n03, replaced: true, limit: 60 * time.Second, inflict: cut(120 * time.Second)},
		{name: "only the agent dies", victims: n03, keeps: true, limit: 30 * time.Second,
			inflict: each(func(s *faultSite, m string) { s.signal(m, "muster-agent", unix.SIGKILL) })},
		{name: "only the agent hangs", victims: n03, keeps: true, limit: 60 * time.Second,
			inflict: func(s *faultSite, machines []string) func() {
				s.signal(machines[0], "muster-agent", unix.SIGSTOP)
				return func() {
					time.Sleep(25 * time.Second)
					s.signal(machines[0], "muster-agent", unix.SIGCONT)
				}
			}},
		{name: "a program takes all memory", victims: n03, keeps: true, limit: 60 * time.Second,
			inflict: func(s *faultSite, _ []string) func() {
				// It is killed by the kernel: that it fails is what must happen.
				out, err := s.tryExec(time.Minute, "n03", "./hog")
				if err == nil {
					s.t.Errorf("the hog ended by itself: %s", out)
				}
				return func() {}
			}},
		{name: "the node reboots by itself", victims: n03, rebooted: true, limit: 40 * time.Second,
			inflict: func(s *faultSite, _ []string) func() {
				_, _ = s.try(20*time.Second, "", "exec", "cfd", "--node", "n03", "--user", "root", "--", "systemctl", "reboot")
				return func() {}
			}},
		{name: "the server stands still for 40 s", victims: n03, keeps: true, limit: 60 * time.Second,
			inflict: func(s *faultSite, _ []string) func() {
				p := s.cmd.Process
				if err := p.Signal(unix.SIGSTOP); err != nil {
					s.t.Fatal(err)
				}
				time.Sleep(40 * time.Second)
				return func() { _ = p.Signal(unix.SIGCONT) } // it may be killed meanwhile
			}},
		{name: "the head dies while jobs are submitted", short: true, victims: []string{"head"}, replaced: true, limit: 40 * time.Second,
			inflict: each(func(s *faultSite, m string) { s.kill(m) })},
		{name: "the head reboots by itself", victims: []string{"head"}, rebooted: true, limit: 40 * time.Second,
			inflict: func(s *faultSite, _ []string) func() {
				_, _ = s.try(20*time.Second, "", "exec", "cfd", "--node", "head", "--user", "root", "--", "systemctl", "reboot")
				return func() {}
			}},
		{name: "the head freezes", victims: []string{"head"}, replaced: true, limit: 60 * time.Second,
			inflict: each(func(s *faultSite, m string) { s.freeze(m) })},
	}
}

// TestFaults breaks machines under running MPI jobs. After each fault the node
// works again, nobody else noticed, no identity was twice on the wire, the data
// is whole and nothing is left. MUSTER_FAULTS=once tells all stories and not only
// the short ones; with MUSTER_FAULTS=all each is told again with the server ended
// by kill -9 in the middle.
func TestFaults(t *testing.T) {
	if testing.Short() || os.Getuid() != 0 {
		t.Skip("breaks real machines: needs root, and time")
	}
	which := os.Getenv("MUSTER_FAULTS")
	all := which == "all" || which == "once"
	var rows []string
	for _, f := range failures() {
		if !f.short && !all {
			continue
		}
		for _, killed := range []bool{false, true} {
			name := f.name
			if killed {
				name += "; the server is killed meanwhile"
			}
			if killed && which != "all" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				row := f.run(t, killed)
				if !killed {
					rows = append(rows, row)
				}
			})
		}
	}
	if all && !t.Failed() {
		updateTable(t, rows)
	}
}

// run tells the story of one fault, and gives its row of the table.
func (f failure) run(t *testing.T, killServer bool) string {
	s := newFaultSite(t, "8", "")
	s.must("create", "cfd", "-n", "4", "--image", "hpc", "--users", s.user, "--wait")
	wire := tap(t, s.instance)
	for _, name := range []string{"steady", "hog"} {
		text, err := os.ReadFile("testdata/fault/" + name + ".c")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.try(time.Minute, string(text), "exec", "cfd", "--user", s.user, "--", "sh", "-c", "cat > "+name+".c && mpicc -O2 -o "+name+" "+name+".c"); err != nil {
			t.Fatal(err)
		}
	}
	s.exec("head", "head -c 4000000 /dev/urandom > data; sha256sum data > data.sum")

	w := s.startWork(f)
	var machines []string
	before := map[string]string{}
	for _, v := range f.victims {
		n, err := s.node(v)
		if err != nil {
			t.Fatal(err)
		}
		machines = append(machines, string(n.Machine))
		before[v] = fmt.Sprintf("%s/%d", n.Machine, n.Attempt)
		// It speaks once, so that the wiretap knows where it was before.
		s.exec(v, "timeout 5 bash -c '</dev/tcp/n01/22'")
	}
	began := time.Now()
	wait := f.inflict(s, machines)
	broken := [2]time.Time{began, time.Now()}
	seen := s.lookAround(f)
	if killServer {
		time.Sleep(time.Duration(rand.Int64N(int64(8 * time.Second))))
		s.restart()
	}
	var took time.Duration
	if f.keeps {
		wait()
	}
	s.within(f.limit+3*time.Minute, "the nodes work again", func() error { return f.works(s, before) })
	took = time.Since(began)
	if took > f.limit {
		t.Logf("slow: %s (a shared machine may be; the limit that fails is three minutes later)", took)
	}
	if !f.keeps {
		wait()
	}
	outcome := w.end(s, f, broken, killServer)
	// And what was not hit, or came back, works together. No job holds nodes
	// because its srun ended while the head was away; a node whose step could not
	// tell of its end needs up to a minute.
	s.within(4*time.Minute, "srun on all nodes", func() error {
		out, err := s.tryExec(30*time.Second, "head", "srun -N4 --ntasks-per-node=1 hostname | sort | tr '\\n' ' '")
		if err == nil && strings.TrimSpace(out) != "n01 n02 n03 n04" {
			err = fmt.Errorf("srun says %q", out)
		}
		return err
	})
	s.exec("head", "sha256sum -c data.sum")
	for _, v := range f.victims {
		n, err := s.node(v)
		if err != nil {
			t.Fatal(err)
		}
		now := fmt.Sprintf("%s/%d", n.Machine, n.Attempt)
		machine, _, _ := strings.Cut(before[v], "/")
		switch {
		case f.replaced && killServer && string(n.Machine) == machine && now != before[v]:
			// Killed before it had decided, it found the machine off: that may have been a reboot.
		case f.replaced && string(n.Machine) == machine:
			t.Errorf("%s is still on %s", v, machine)
		case f.replaced && wire.places(n.Address) < 2:
			t.Errorf("%s was heard from %d machines", v, wire.places(n.Address))
		case f.rebooted && (string(n.Machine) != machine || now == before[v]):
			t.Errorf("%s went from %s to %s: it should boot again on its machine", v, before[v], now)
		case f.keeps && now != before[v]:
			t.Errorf("%s went from %s to %s: nothing should have happened to it", v, before[v], now)
		}
	}
	wire.once(t)
	conditions := seen()
	s.nothingLeft()
	what := "nothing: it goes on"
	switch {
	case f.replaced:
		what = "fenced; another machine takes its name, address and keys"
	case f.rebooted:
		what = "boots again on the same machine"
	}
	if f.keeps {
		return fmt.Sprintf("| %s | %s | %s | - | %s |", f.name, conditions, what, outcome)
	}
	return fmt.Sprintf("| %s | %s | %s | %.0f s | %s |", f.name, conditions, what, took.Seconds(), outcome)
}

// works reports whether each victim is ready and the scheduler gives it jobs.
func (f failure) works(s *faultSite, before map[string]string) error {
	for _, v := range f.victims {
		n, err := s.node(v)
		if err != nil {
			return err
		}
		if n.Status != "ready" {
			return fmt.Errorf("%s is %s", v, n.Status)
		}
		if now := fmt.Sprintf("%s/%d", n.Machine, n.Attempt); !f.keeps && now == before[v] {
			return fmt.Errorf("%s is as before", v)
		}
		if v == "head" {
			if _, err := s.tryExec(20*time.Second, v, "sinfo -h"); err != nil {
				return err
			}
			continue
		}
		out, err := s.tryExec(10*time.Second, "head", "sinfo -h -n "+v+" -o %T")
		if err != nil {
			return err
		}
		switch state := strings.TrimSpace(out); state {
		case "idle", "mixed", "allocated", "completing":
		default:
			return fmt.Errorf("the scheduler says that %s is %s", v, state)
		}
	}
	return nil
}

// lookAround remembers the codes of conditions that the cluster and its victims
// show, until the function that it returns is called.
func (s *faultSite) lookAround(f failure) func() string {
	stop, done := make(chan struct{}), make(chan struct{})
	var codes []string
	add := func(code string) {
		for _, c := range codes {
			if c == code {
				return
			}
		}
		codes = append(codes, code)
	}
	go func() {
		defer close(done)
		for {
			if c, err := s.show(); err == nil {
				for _, x := range c.Conditions {
					add(string(x.Code))
				}
				for _, n := range c.Nodes {
					for _, x := range n.Conditions {
						add(string(x.Code))
					}
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	return func() string {
		close(stop)
		<-done
		if len(codes) == 0 {
			return "-"
		}
		return "`" + strings.Join(codes, "`, `") + "`"
	}
}

// updateTable writes the table of docs/operators/operate.md, or compares what does not
// vary with it.
func updateTable(t *testing.T, rows []string) {
	t.Helper()
	const begin, end = "<!-- faults: begin -->\n", "<!-- faults: end -->\n"
	const path = "../../docs/operators/operate.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table of faults", path)
	}
	table := "| what happens | what is shown meanwhile | what Muster does | takes jobs again after | jobs |\n|---|---|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
	fmt.Print(table)
	if update, _ := strconv.ParseBool(os.Getenv("MUSTER_UPDATE")); update {
		if err := os.WriteFile(path, []byte(head+begin+table+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
