package journal_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/muster-hpc/muster/agent/journal"
	"github.com/muster-hpc/muster/internal/executable"
	"github.com/muster-hpc/muster/wire"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const head = `{"__CURSOR":"s=1;i=2","__REALTIME_TIMESTAMP":"1700000000123456",`
	at := time.UnixMicro(1700000000123456).UTC()
	for _, c := range []struct {
		in   string
		want wire.JournalLine
		ok   bool
	}{
		{head + `"MESSAGE":"hello","PRIORITY":"3","_SYSTEMD_UNIT":"ssh.service"}`, wire.JournalLine{Unit: "ssh.service", Priority: 3, Message: "hello"}, true},
		{head + `"MESSAGE":"Started x","_SYSTEMD_UNIT":"init.scope","UNIT":"x.service"}`, wire.JournalLine{Unit: "x.service", Priority: 6, Message: "Started x"}, true},
		{head + `"MESSAGE":"m","SYSLOG_IDENTIFIER":"logger","PRIORITY":"99"}`, wire.JournalLine{Unit: "logger", Priority: 6, Message: "m"}, true},
		{head + `"MESSAGE":[104,105,255]}`, wire.JournalLine{Priority: 6, Message: "hi\uFFFD"}, true},
		{head + `"MESSAGE":["first","second"]}`, wire.JournalLine{Priority: 6, Message: "first"}, true},
		{head + `"MESSAGE":[[104,105],"second"]}`, wire.JournalLine{Priority: 6, Message: "hi"}, true},
		{head + `"MESSAGE":null}`, wire.JournalLine{Priority: 6, Message: "[a message that is too long or empty]"}, true},
		{head + `"MESSAGE":{"a":1}}`, wire.JournalLine{Priority: 6}, true},
		{`{"MESSAGE":"no cursor","__REALTIME_TIMESTAMP":"1"}`, wire.JournalLine{}, false},
		{`{"__CURSOR":"x","MESSAGE":"no time"}`, wire.JournalLine{}, false},
		{`{"__CURSOR":"x","__REALTIME_TIMESTAMP":"9223372036854775807","MESSAGE":"far future"}`, wire.JournalLine{}, false},
		{`-- No entries --`, wire.JournalLine{}, false},
		{``, wire.JournalLine{}, false},
	} {
		if c.ok {
			c.want.At = at
		}
		got, cursor, ok := journal.Parse([]byte(c.in))
		if got != c.want || ok != c.ok || ok != (cursor != "") {
			t.Errorf("%s: %+v, %q, %v", c.in, got, cursor, ok)
		}
	}
	long, _, _ := journal.Parse([]byte(head + `"MESSAGE":"` + strings.Repeat("ä", 5000) + `"}`))
	if len(long.Message) > 4096 || !utf8.ValidString(long.Message) || !strings.HasSuffix(long.Message, "[cut]") {
		t.Errorf("%d bytes, %q", len(long.Message), long.Message[len(long.Message)-10:])
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"__CURSOR":"s","__REALTIME_TIMESTAMP":"1","MESSAGE":[[1],[2]],"PRIORITY":["3"]}`))
	f.Add([]byte(`{"__CURSOR":["s"],"__REALTIME_TIMESTAMP":"1","MESSAGE":"x","UNIT":[1,300,-4]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, cursor, ok := journal.Parse(b)
		if !ok {
			return
		}
		if cursor == "" || len(l.Message) > 4096 || len(l.Unit) > 128 || l.Priority < 0 || l.Priority > 7 {
			t.Fatalf("%+v", l)
		}
		if _, err := json.Marshal(l); err != nil {
			t.Fatal(err)
		}
	})
}

// program writes a shell script that plays journalctl and notes its arguments.
func program(t *testing.T, body string) (path, args string) {
	t.Helper()
	dir := t.TempDir()
	path, args = filepath.Join(dir, "journalctl"), filepath.Join(dir, "args")
	script := "#!/bin/sh\necho \"$@\" >> " + args + "\n" +
		`line() { echo "{\"__CURSOR\":\"c$1\",\"__REALTIME_TIMESTAMP\":\"1\",\"MESSAGE\":\"m$1\"}"; }` + "\n" + body + "\n"
	if err := executable.Write(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path, args
}

type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) put(j wire.JournalLine, cursor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, j.Message+"@"+cursor)
}

func (l *lines) wait(t *testing.T, n int) string {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		if len(l.text) >= n {
			defer l.mu.Unlock()
			return strings.Join(l.text, " ")
		}
		l.mu.Unlock()
	}
	t.Fatalf("fewer than %d lines: %v", n, l.text)
	return ""
}

func TestFollowResumesAfterTheReaderDied(t *testing.T) {
	t.Parallel()
	path, args := program(t, `
case "$*" in
*after-cursor=c2*) line 3; exec sleep 1000;;
*) line 1; echo garbage; head -c 300000 /dev/zero | tr '\0' x; echo; line 2; exit 1;;
esac`)
	ctx, cancel := context.WithCancel(context.Background())
	var got lines
	done := make(chan struct{})
	go func() {
		journal.Follow(ctx, journal.Options{Program: path, Again: 10 * time.Millisecond}, "", got.put)
		close(done)
	}()
	if s := got.wait(t, 3); s != "m1@c1 m2@c2 m3@c3" {
		t.Error(s)
	}
	cancel()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("Follow did not end; its reader lives")
	}
	if b, err := os.ReadFile(args); err != nil || strings.Contains(strings.SplitN(string(b), "\n", 2)[0], "cursor") {
		t.Errorf("%s, %v", b, err)
	}
}

func TestFollowWithoutJournalctl(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	go func() {
		journal.Follow(context.Background(), journal.Options{Program: "no-such-program-here"}, "", nil)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("it does not give up")
	}
}

func TestFloodIsSlowedDown(t *testing.T) {
	t.Parallel()
	path, _ := program(t, `i=0; while :; do i=$((i+1)); line $i; done`)
	ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer cancel()
	var got lines
	journal.Follow(ctx, journal.Options{Program: path, Rate: 100}, "", got.put)
	if n := len(got.text); n < 100 || n > 300 {
		t.Errorf("%d lines in 1.5 s at 100 a second", n)
	}
}

// The real journalctl, on a journal made for the test.
func TestRealJournalctl(t *testing.T) {
	t.Parallel()
	remote, err := exec.LookPath("/lib/systemd/systemd-journal-remote")
	if err != nil {
		t.Skip("systemd-journal-remote is not installed: no journal can be made")
	}
	if _, err := exec.LookPath("journalctl"); err != nil {
		t.Skip("journalctl is not installed")
	}
	dir := t.TempDir()
	var export strings.Builder
	for i := range 3 {
		export.WriteString("__REALTIME_TIMESTAMP=" + strconv.Itoa(1700000000000000+i) + "\n_BOOT_ID=0123456789abcdef0123456789abcdef\n__MONOTONIC_TIMESTAMP=" + strconv.Itoa(i+1) + "\nMESSAGE=real " + strconv.Itoa(i) + "\nPRIORITY=4\n\n")
	}
	cmd := exec.Command(remote, "--output="+dir+"/x.journal", "-")
	cmd.Stdin = strings.NewReader(export.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("systemd-journal-remote: %v %s", err, out)
	}
	path, _ := program(t, `for a; do shift; [ "$a" = --boot ] || set -- "$@" "$a"; done; exec journalctl --directory=`+dir+` "$@"`)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var got lines
	go journal.Follow(ctx, journal.Options{Program: path}, "", got.put)
	if s := got.wait(t, 3); !strings.Contains(s, "real 0@") || !strings.Contains(s, "real 2@") {
		t.Error(s)
	}
}
