package agentserver

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
	"pgregory.net/rapid"
)

func testJournal(t *testing.T) *Server {
	t.Helper()
	return &Server{journal: newJournal(t.TempDir(), slog.New(slog.DiscardHandler), muster.SystemClock{})}
}

// What is read from the end of the files is what reading all of them gives.
func TestPropertyTailIsTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		paths := []string{filepath.Join(dir, "new"), filepath.Join(dir, "old")}
		var want []wire.JournalLine
		q := wire.LogQuery{Lines: rapid.IntRange(1, 400).Draw(rt, "lines"), Unit: rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "unit"),
			Filter: rapid.Bool().Draw(rt, "filter"), Least: rapid.IntRange(0, 7).Draw(rt, "least")}
		for i, path := range []string{paths[1], paths[0]} {
			var b strings.Builder
			for j := range rapid.IntRange(0, 200).Draw(rt, "n") {
				l := wire.JournalLine{At: time.Unix(int64(i*1000+j), 0).UTC(), Unit: rapid.SampledFrom([]string{"a.service", "b", "c"}).Draw(rt, "u"),
					Priority: j % 8, Message: strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 100, 4000}).Draw(rt, "size"))}
				line, _ := json.Marshal(l)
				b.Write(line)
				b.WriteByte('\n')
				if rapid.IntRange(0, 20).Draw(rt, "torn") == 0 {
					b.WriteString("{\"at\":\"2026\n")
				}
				if q.Matches(l) {
					want = append(want, l)
				}
			}
			if rapid.Bool().Draw(rt, "half") {
				b.WriteString(`{"message":"ha`)
			}
			if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
				rt.Fatal(err)
			}
		}
		want = want[max(0, len(want)-q.Lines):]
		got, err := tailJournal(paths, q)
		if err != nil || len(got) != len(want) {
			rt.Fatalf("%d lines of %d, %v", len(got), len(want), err)
		}
		for i := range got {
			if got[i] != want[i] {
				rt.Fatalf("line %d: %+v, want %+v", i, got[i], want[i])
			}
		}
	})
}

func FuzzTail(f *testing.F) {
	f.Add([]byte("{\"message\":\"a\"}\n\n\n{}\nx"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "j")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := tailJournal([]string{path, path + ".1"}, wire.LogQuery{Lines: 10}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestJournalMarksAttempts(t *testing.T) {
	t.Parallel()
	s := testJournal(t)
	j := s.journal
	now := time.Now().UTC()
	say := func(at time.Time, unit, text string) {
		j.add("c-1", "n01", []wire.JournalLine{{At: at, Unit: unit, Message: text}}, 0)
	}
	id := pki.NodeIdentity{Cluster: "c-1", Node: "n01", Machine: "m-1", Attempt: 1}
	j.begins(id)
	j.begins(id) // its agent asked again
	say(now.Add(-time.Second), "kernel", "boot")
	say(now, "muster", "---- attempt 9 of n01 begins ----")
	id.Machine, id.Attempt = "m-2", 2
	j.begins(id)
	say(now.Add(time.Hour), "kernel", "boot again")
	lines, err := s.Lines("c-1", "n01", wire.LogQuery{Lines: 100})
	if err != nil || len(lines) != 5 {
		t.Fatalf("%+v %v", lines, err)
	}
	if lines[0].Unit != "muster" || !strings.Contains(lines[0].Message, "attempt 1") || !strings.Contains(lines[0].Message, "m-1") || !lines[0].At.Before(lines[1].At) {
		t.Errorf("%+v", lines[0])
	}
	if lines[2].Unit != "muster (node)" {
		t.Errorf("a node spoke in the server's name: %+v", lines[2])
	}
	if !strings.Contains(lines[3].Message, "attempt 2") || !strings.Contains(lines[3].Message, "m-2") {
		t.Errorf("%+v", lines[3])
	}
	j.begins(pki.NodeIdentity{Cluster: "c-1", Node: "n02"})
	if files, _ := os.ReadDir(filepath.Join(j.dir, "c-1")); len(files) != 1 {
		t.Errorf("a node that said nothing has a file: %v", files)
	}
}

// Who follows gets every line once, and never holds up a report.
func TestFollowNeverWaits(t *testing.T) {
	t.Parallel()
	s := testJournal(t)
	lines, lost, leave := s.Follow("c-1")
	other, _, leaveOther := s.Follow("c-2")
	const more = 1000
	for i := range followerRoom + more {
		s.journal.add("c-1", "n01", []wire.JournalLine{{Message: fmt.Sprint(i)}}, 0)
	}
	for i := range followerRoom {
		if l := <-lines; l.Message != fmt.Sprint(i) || l.Node != "n01" {
			t.Fatalf("line %d is %+v", i, l)
		}
	}
	if n := lost(); n != more {
		t.Errorf("%d lost", n)
	}
	if lost() != 0 || len(other) != 0 {
		t.Error("told twice, or of another cluster")
	}
	leave()
	leaveOther()
	if len(s.journal.followers) != 0 {
		t.Error("followers are left behind")
	}
}

func TestBoundJournals(t *testing.T) {
	t.Parallel()
	s := testJournal(t)
	old := time.Now().Add(-time.Hour)
	for i := range 10 {
		c := muster.ClusterID(fmt.Sprintf("c-%d", i))
		s.journal.add(c, "n01", []wire.JournalLine{{Message: strings.Repeat("x", 10_000)}}, 0)
		path := s.journal.path(c, "n01")
		if i < 8 {
			if err := os.Chtimes(path, old.Add(time.Duration(i)*time.Second), old.Add(time.Duration(i)*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.BoundJournals(45_000); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(s.journal.dir, "*", "*"))
	if err != nil || len(left) != 4 || !strings.Contains(left[0], "c-6") {
		t.Errorf("%v %v", left, err)
	}
	if err := s.BoundJournals(0); err != nil { // what grows now is spared
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(s.journal.dir); len(left) != 2 {
		t.Errorf("%v", left)
	}
}
