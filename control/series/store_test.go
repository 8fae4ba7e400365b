package series

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// hand is a clock that is moved by hand.
type hand struct{ now time.Time }

func (h *hand) Now() time.Time                       { return h.now }
func (h *hand) After(time.Duration) <-chan time.Time { return nil }

func begin() *hand { return &hand{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func open(t testing.TB, h *hand, o Options) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "series.db")
	o.Clock = h
	s := Open(t.Context(), path, o)
	t.Cleanup(func() { _ = s.Close() })
	return s, path
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-4*math.Max(math.Abs(a), math.Abs(b))+1e-9 }

func flush(t testing.TB, s *Store) {
	t.Helper()
	if err := s.write(context.Background(), true); err != nil {
		t.Fatal(err)
	}
}

// only reads one node in one point.
func whole(t testing.TB, s *Store, cluster, node string, from, to time.Time) (Entry, bool) {
	t.Helper()
	r, err := s.Read(t.Context(), Query{Owner: cluster, Name: node, From: from, To: to, Step: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Entries) == 0 {
		return Entry{}, false
	}
	return r.Entries[0], true
}

func TestSampleIsThereAtOnceAndAfterReopening(t *testing.T) {
	t.Parallel()
	h := begin()
	s, path := open(t, h, Options{})
	from := h.now
	for i := range 6 {
		s.Node(h.now, "c-1", "n01", "m-1", "b", wire.Usage{CPUUser: 2, MemoryUsed: 1 << 30, NetRx: int64(i) * 30_000})
		h.now = h.now.Add(3 * time.Second)
	}
	check := func(when string) {
		e, ok := whole(t, s, "c-1", "n01", from, h.now)
		if !ok {
			t.Fatalf("%s: nothing", when)
		}
		if m, _, ok := e.Total(CPUUser); !ok || !near(m, 2) {
			t.Errorf("%s: cpu %v", when, m)
		}
		if m, _, ok := e.Total(NetRx); !ok || !near(m, 10_000) {
			t.Errorf("%s: rate %v", when, m)
		}
		if len(e.Machines) != 1 || e.Machines[0].Machine != "m-1" {
			t.Errorf("%s: machines %v", when, e.Machines)
		}
	}
	check("in memory")
	flush(t, s)
	check("in the file")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = Open(t.Context(), path, Options{Clock: h})
	defer s.Close()
	check("reopened")
}

func TestCountersThatBeginAnewMakeNoSpikes(t *testing.T) {
	t.Parallel()
	h := begin()
	s, _ := open(t, h, Options{})
	from := h.now
	say := func(machine muster.MachineID, boot string, rx int64) {
		s.Node(h.now, "c-1", "n01", machine, boot, wire.Usage{NetRx: rx})
		h.now = h.now.Add(10 * time.Second)
	}
	say("m-1", "a", 1_000_000)
	say("m-1", "a", 1_010_000)
	say("m-1", "b", 5)         // rebooted
	say("m-1", "b", 10_005)    //
	say("m-2", "c", 9_000_000) // another machine
	say("m-2", "c", 9_010_000)
	say("m-2", "c", 100) // counter went back
	say("m-2", "c", 10_100)
	h.now = h.now.Add(time.Hour) // a long silence
	say("m-2", "c", 9_999_999_999)
	say("m-2", "c", 9_999_999_999+10_000)
	e, _ := whole(t, s, "c-1", "n01", from, h.now)
	mean, most, ok := e.Total(NetRx)
	if !ok || !near(mean, 1000) || !near(most, 1000) {
		t.Errorf("mean %v, most %v", mean, most)
	}
	if len(e.Machines) != 2 {
		t.Errorf("machines %v", e.Machines)
	}
	gaps := 0
	for i := range e.points {
		if _, ok := e.Mean(CPUUser, i); !ok {
			gaps++
		}
	}
	if gaps < 350 {
		t.Errorf("an hour of silence shows %d gaps", gaps)
	}
}

func TestFileIsSetAsideWhenItIsNotOurs(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"text": "this is not a database at all, but it is long enough to be read as one\n", "cut": "SQLite format 3\x00"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "series.db")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			h := begin()
			s := Open(t.Context(), path, Options{Clock: h})
			defer s.Close()
			s.Node(h.now, "c-1", "n01", "m", "", wire.Usage{CPUUser: 1})
			flush(t, s)
			if b, err := os.ReadFile(path + ".aside"); err != nil || string(b) != content {
				t.Errorf("set aside: %q %v", b, err)
			}
			if s.Stats().Blocks != 1 {
				t.Errorf("%+v", s.Stats())
			}
		})
	}
}

func BenchmarkSample(b *testing.B) {
	h := begin()
	s, _ := open(b, h, Options{})
	const nodes = 10_000
	names := make([]string, nodes)
	for i := range names {
		names[i] = fmt.Sprintf("n%05d", i)
	}
	i := 0
	for b.Loop() {
		n := i % nodes
		if i%3333 == 0 {
			h.now = h.now.Add(10 * time.Second)
			if err := s.write(b.Context(), false); err != nil {
				b.Fatal(err)
			}
		}
		x := int64(i/nodes) * int64(1000+n*7)
		s.Node(h.now, "c-1", names[n], "m", "boot", wire.Usage{CPUUser: float64(n%8) + float64(i%100)/100, CPUSystem: 0.1, Load1: float64(n%8) + .3,
			MemoryUsed: int64(n)<<18 + int64(i)<<12, MemoryTotal: 64 << 30, NetRx: x, NetTx: x * 2, MgmtRx: x / 9, MgmtTx: x / 7, DiskRead: x / 5, DiskWrite: x / 3,
			DiskUsed: int64(n) << 22, DiskTotal: 1 << 40, Processes: 100 + n%50})
		i++
	}
	b.ReportMetric(float64(s.Stats().Bytes)/float64(b.N), "B/sample")
}

func BenchmarkReadDay(b *testing.B) {
	h := begin()
	s, _ := open(b, h, Options{})
	from := h.now
	for t := range 24 * 120 {
		h.now = from.Add(time.Duration(t) * 30 * time.Second)
		for n := range 1000 {
			s.Node(h.now, "c-1", fmt.Sprintf("n%04d", n), "m", "boot", wire.Usage{CPUUser: float64((n + t) % 8), MemoryUsed: int64(n*t) << 10, NetRx: int64(t * n), NetTx: int64(t * n * 2)})
		}
		if t%2 == 0 {
			if err := s.write(b.Context(), false); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(s.Stats().Bytes), "B/file")
	for b.Loop() {
		r, err := s.Read(b.Context(), Query{Owner: "c-1", From: from, To: h.now, Step: 5 * time.Minute})
		if err != nil || len(r.Entries) != 1000 || r.Points < 288 {
			b.Fatal(err, len(r.Entries), r.Points)
		}
	}
}
