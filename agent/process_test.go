package agent_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// program builds the real agent.
func program(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "muster-agent")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v9", "-o", bin, "../cmd/muster-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// The real program is killed and started again, without ever being given a
// configuration: that would change the computer of the test.
func TestProgramIsKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.inline, s.config = false, &wire.NodeConfig{}
	bin, dir := program(t), t.TempDir()
	seedFile := filepath.Join(dir, "seed.json")
	b, err := json.Marshal(s.seed())
	check(t, err)
	check(t, os.WriteFile(seedFile, b, 0o400))
	run := func() *exec.Cmd {
		cmd := exec.Command(bin, "--seed", seedFile, "--state", dir)
		cmd.Stderr = os.Stderr
		check(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	said := func(r wire.Report) bool { return r.Attempt == 1 && r.BootID != "" }

	knocked, open := make(chan struct{}, 1), make(chan struct{})
	s.answerWith(func(w http.ResponseWriter, r *http.Request) {
		select {
		case knocked <- struct{}{}:
		default:
		}
		<-open
		if r.URL.Path == "/v1/join" {
			s.join(w, r)
		}
	})
	began := time.Now()
	first := run()
	<-knocked
	logFootprint(t, "at the join, "+time.Since(began).Round(time.Millisecond).String()+" after the start", first.Process.Pid)
	s.answerWith(nil)
	close(open)
	r := s.until("a report", said)
	names := ""
	for _, st := range r.Stages {
		names += " " + st.Name
	}
	if !strings.HasPrefix(names, " started") || !strings.Contains(names, " init agent joined") {
		t.Errorf("stages%s", names)
	}
	if b, err := os.ReadFile(seedFile); err != nil || strings.Contains(string(b), "mjt_") {
		t.Errorf("the token is still on disk: %v", err)
	}
	time.Sleep(time.Second)
	logFootprint(t, "a second later", first.Process.Pid)
	check(t, first.Process.Kill())
	_ = first.Wait()

	s.forget()
	second := run()
	s.until("a report after the kill", said)
	if joins, _, _ := s.count(); joins != 1 {
		t.Errorf("%d joins", joins)
	}
	// The status is written after the report has been answered.
	eventually(t, "show", func() bool {
		out, err := exec.Command(bin, "show", "--state", dir).CombinedOutput()
		text := string(out)
		return err == nil && strings.Contains(text, "local-1, attempt 1") && strings.Contains(text, "configuring") &&
			!strings.Contains(text, "PRIVATE") && strings.Contains(text, "v9, running since")
	})

	s.answerWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	check(t, second.Process.Signal(syscall.SIGTERM))
	done := make(chan error, 1)
	go func() { done <- second.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("SIGTERM did not end it")
	}
}

// logFootprint prints what the agent has cost so far.
func logFootprint(t *testing.T, when string, pid int) {
	t.Helper()
	at := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(at + "/status")
	if err != nil {
		return
	}
	text := ""
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmRSS") || strings.HasPrefix(line, "RssAnon") || strings.HasPrefix(line, "Threads") {
			text += " " + strings.Join(strings.Fields(line), " ")
		}
	}
	var spent int64
	tasks, err := filepath.Glob(at + "/task/*/schedstat")
	check(t, err)
	for _, f := range tasks {
		if b, err := os.ReadFile(f); err == nil {
			first, _, _ := strings.Cut(string(b), " ")
			n, _ := strconv.ParseInt(first, 10, 64)
			spent += n
		}
	}
	t.Logf("%s:%s, %v of processor", when, text, time.Duration(spent).Round(10*time.Microsecond))
}

func TestProgramWithoutSeed(t *testing.T) {
	t.Parallel()
	bin := program(t)
	for args, want := range map[string]string{
		"run --seed /nonexistent/seed.json": "there is no seed at /nonexistent/seed.json",
		"show --state /nonexistent":         "the agent has not run on this node yet",
		"dance":                             "no command",
		"run --fast":                        "usage: muster-agent",
	} {
		out, err := exec.Command(bin, strings.Fields(args)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	if out, err := exec.Command(bin, "version").Output(); err != nil || string(out) != "v9\n" {
		t.Errorf("%q, %v", out, err)
	}
}
