package usage

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
)

type tree string

func (r tree) put(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(string(r), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func base(t *testing.T, uidMap string) tree {
	r := tree(t.TempDir())
	r.put(t, "proc/self/uid_map", uidMap)
	r.put(t, "proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 600 kB\n")
	r.put(t, "proc/loadavg", "3.50 1 1 1/2 3\n")
	r.put(t, "proc/stat", "cpu  100 0 100 500 100 0 0 0 0 0\n")
	r.put(t, "proc/diskstats", "8 0 sda 1 0 10 0 1 0 20 0 0 0 0\n8 1 sda1 1 0 10 0 1 0 20 0 0 0 0\n7 0 loop0 1 0 99 0 1 0 99 0\n259 0 nvme0n1 1 0 1 0 1 0 1 0 0\n259 1 nvme0n1p1 1 0 1 0 1 0 1 0 0\n")
	r.put(t, "proc/net/dev", "Inter-| x\n face |b\n    lo: 5 0 0 0 0 0 0 0 5 0\n  msg0: 1000 1 0 0 0 0 0 0 2000 1 0\n mgmt0:30 0 0 0 0 0 0 0 40 0\n")
	return r
}

func pid(state string, user, system, childUser, childSystem int) string {
	return fmt.Sprintf("7 (a ) b) %s 1 1 1 0 -1 0 0 0 0 0 %d %d %d %d 20 0 1 0 1", state, user, system, childUser, childSystem)
}

func noNode() Node { return Node{} }

func TestWholeMachine(t *testing.T) {
	t.Parallel()
	r := base(t, "0 0 4294967295\n")
	r.put(t, "proc/1/stat", pid("S", 9, 9, 9, 9))
	now := time.Unix(1000, 0)
	s := New(string(r), now)
	r.put(t, "proc/stat", "cpu  300 100 200 500 200 50 50 0 0 0\n")
	u, err := s.Sample(now.Add(2*time.Second), Node{Message: "msg0", Management: "mgmt0"})
	if err != nil {
		t.Fatal(err)
	}
	if u.CPUUser != 1.5 || u.CPUSystem != 1 || u.CPUWait != 0.5 || u.Load1 != 3.5 {
		t.Errorf("processor %+v", u)
	}
	if u.MemoryUsed != 400<<10 || u.MemoryTotal != 1000<<10 || u.Processes != 1 {
		t.Errorf("memory %+v", u)
	}
	if u.NetRx != 1000 || u.NetTx != 2000 || u.MgmtRx != 30 || u.MgmtTx != 40 {
		t.Errorf("network %+v", u)
	}
	if u.DiskRead != 11*512 || u.DiskWrite != 21*512 || u.DiskTotal == 0 || u.DiskUsed > u.DiskTotal {
		t.Errorf("disk %+v", u)
	}
}

// Without control groups a slice is the sum of its processes, and the host's
// totals are not believed.
func TestSliceByProcesses(t *testing.T) {
	t.Parallel()
	r := base(t, "0 100000 65536\n")
	r.put(t, "proc/1/stat", pid("S", 100, 50, 200, 0))
	r.put(t, "proc/8/stat", pid("R", 0, 0, 0, 0))
	r.put(t, "proc/9/stat", pid("D", 0, 0, 0, 0))
	r.put(t, "proc/9/statm", "1000 300 100 1 0 1 0")
	r.put(t, "proc/9/io", "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 4096\n")
	r.put(t, "proc/sys/kernel/x", "")
	now := time.Unix(1000, 0)
	s := New(string(r), now)
	r.put(t, "proc/1/stat", pid("S", 100, 100, 400, 0))
	u, err := s.Sample(now.Add(time.Second), Node{Memory: 500 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if u.CPUUser != 2 || u.CPUSystem != 0.5 || u.CPUWait != 0 || u.Processes != 3 {
		t.Errorf("%+v", u)
	}
	if math.Abs(u.Load1-2.5*(1-math.Exp(-1.0/60))) > 1e-9 { // 2.5 cores busy beat one that runs
		t.Errorf("load %v", u.Load1)
	}
	if u.MemoryUsed != 200*int64(os.Getpagesize()) || u.MemoryTotal != 500<<10 {
		t.Errorf("memory %+v", u)
	}
	if u.DiskRead != 4096 || u.DiskWrite != 4096 {
		t.Errorf("disk %+v", u)
	}
	// A process that dies unseen takes its time along; the figure stays sane.
	r.put(t, "proc/1/stat", pid("S", 0, 0, 0, 0))
	if u, err = s.Sample(now.Add(2*time.Second), noNode()); err != nil || u.CPUUser != 0 || u.CPUSystem != 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestSliceByControlGroups(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]map[string]string{
		"v1": {
			"run/muster/cgroup/memory/memory.usage_in_bytes": "900\n",
			"run/muster/cgroup/memory/memory.limit_in_bytes": "5000\n",
			"run/muster/cgroup/memory/memory.stat":           "cache 1\ntotal_cache 300\ntotal_shmem 100\n",
		},
		"v2": {
			"sys/fs/cgroup/memory.current": "900\n",
			"sys/fs/cgroup/memory.max":     "5000\n",
			"sys/fs/cgroup/memory.stat":    "anon 1\nfile 300\nshmem 100\n",
		},
	} {
		r := base(t, "0 100000 65536\n")
		r.put(t, "sys/fs/cgroup/cpu.stat", "usage_usec 0\nuser_usec 1000000\nsystem_usec 0\n")
		r.put(t, "sys/fs/cgroup/io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull total=9\n")
		for n, text := range memory {
			r.put(t, n, text)
		}
		now := time.Unix(1000, 0)
		s := New(string(r), now)
		r.put(t, "sys/fs/cgroup/cpu.stat", "usage_usec 0\nuser_usec 2500000\nsystem_usec 250000\n")
		r.put(t, "sys/fs/cgroup/io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n")
		u, err := s.Sample(now.Add(time.Second), noNode())
		if err != nil || u.CPUUser != 1.5 || u.CPUSystem != 0.25 || u.CPUWait != 0.5 || u.MemoryUsed != 700 || u.MemoryTotal != 5000 {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
}

func TestNoProc(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir(), time.Now())
	if _, err := s.Sample(time.Now(), noNode()); muster.CodeOf(err) != muster.EUnavailable {
		t.Error(err)
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	s := New("", time.Now())
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
	}
	u, err := s.Sample(time.Now(), noNode())
	t.Logf("slice %v: %+v", s.slice, u)
	if err != nil || u.Processes < 1 || u.MemoryUsed <= 0 || u.MemoryTotal < u.MemoryUsed || u.DiskTotal <= 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestWholeDisks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"sda": true, "sda1": false, "vdb": true, "nvme0n1": true, "nvme0n1p2": false, "mmcblk0": true,
		"mmcblk0p1": false, "loop0": false, "dm-0": false, "md0": false, "sr0": false,
	} {
		if wholeDisk(name) != want {
			t.Errorf("%s", name)
		}
	}
}

func TestRateIsNeverNegative(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rate(rapid.Float64Range(0, 1e12).Draw(t, "a"), rapid.Float64Range(0, 1e12).Draw(t, "b"), rapid.Float64Range(0.001, 1e6).Draw(t, "d"))
		if v < 0 || math.IsNaN(v) {
			t.Fatal(v)
		}
	})
}

func FuzzParsers(f *testing.F) {
	f.Add([]byte("cpu  1 2 3 4 5 6 7 8\n"))
	f.Add([]byte(pid("R", 1, 2, 3, 4)))
	f.Add([]byte("some avg10=0 total=12\n eth0: 1 2 3 4 5 6 7 8 9 10\n8 0 sda 1 0 10 0 1 0 20 0 0 0 0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		user, system, wait := parseStat(b)
		a, z, c, d := traffic(b, noNode())
		r, w := diskstats(b)
		if user < 0 || system < 0 || wait < 0 || parsePressure(b) < 0 || a < 0 && z < 0 && c < 0 && d < 0 && r < 0 && w < 0 || parseStatm(b) < 0 {
			t.Fatal("negative")
		}
		parsePID(b)
		fields(b, ":")
	})
}

func BenchmarkSample(b *testing.B) {
	s := New("", time.Now())
	s.slice = true // the dear way
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Sample(time.Now(), Node{}); err != nil {
			b.Fatal(err)
		}
	}
}

// A sample that comes at once, and one that cannot be, are no news.
func TestNoImpossibleFigures(t *testing.T) {
	t.Parallel()
	r := base(t, "0 100000 65536\n")
	r.put(t, "proc/1/stat", pid("S", 100, 0, 0, 0))
	now := time.Unix(1000, 0)
	s := New(string(r), now)
	s.cores = 1
	for i, c := range []struct {
		after time.Duration
		user  int
		want  float64
	}{
		{time.Millisecond, 105, 0},         // 5 hundredths in a thousandth
		{time.Second, 150, 0.5},            // since it was made, not since the one before
		{time.Second, 250, 1},              // busy
		{10 * time.Millisecond, 260, 1},    // too short
		{990 * time.Millisecond, 300, 0.5}, // both together
		{time.Second, 1000, 0.5},           // a leap
		{2 * time.Second, 1020, 0.1},       // and on from there
		{-time.Hour, 1030, 0.1},            // the clock was set back
		{time.Second, 1060, 0.3},
	} {
		now = now.Add(c.after)
		if i == 1 {
			now = now.Add(-time.Millisecond)
		}
		r.put(t, "proc/1/stat", pid("S", c.user, 0, 0, 0))
		u, err := s.Sample(now, noNode())
		if err != nil || u.CPUUser != c.want {
			t.Errorf("%d: %v cores, want %v (%v)", i, u.CPUUser, c.want, err)
		}
	}
}
