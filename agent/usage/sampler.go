package usage

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/wire"
)

// Node is what the configuration tells about the node.
type Node struct {
	Message    string // interface names
	Management string
	Memory     int64 // bytes that it may use; 0: as found
}

// Sampler takes samples. Processor figures are averages since the sample
// before, the first since the sampler was made; so there is one sampler for
// each reader. Where that is too short to tell, or would be more than there are
// cores, they are those of the sample before. It is not safe for concurrent use.
type Sampler struct {
	root  string
	slice bool
	last  ticks
	load  float64
	total int64
	// busy are the figures of the last sample that had some, and cores the most
	// that they can be; 0: not known.
	busy  ticks
	cores float64
	buf   []byte
	// memoryGroup: the machine's memory group is visible, so that its
	// processes need not be summed.
	memoryGroup bool
}

// ticks are times that only grow, in seconds.
type ticks struct {
	at                 time.Time
	user, system, wait float64
}

// New makes a sampler for the machine whose tree is at root; "" is this one.
func New(root string, now time.Time) *Sampler {
	s := &Sampler{root: filepath.Join("/", root), slice: facts.Slice(root), buf: make([]byte, 8<<10)}
	s.memory(processes{}) // finds out whether there is a group
	s.last = s.processor(now, s.processes())
	if s.root == "/" {
		s.cores = float64(runtime.NumCPU())
	}
	return s
}

// The kernel counts times in hundredths of a second for each process: over less
// than minSpan their sum says nothing. slack is what a figure may be above the
// cores that there are.
const (
	minSpan = 0.9
	slack   = 1.05
)

// Sample reads everything now. What is not there to be read stays zero; the
// error is EUnavailable when there is not even /proc.
func (s *Sampler) Sample(now time.Time, n Node) (wire.Usage, error) {
	if _, err := os.Stat(s.path("proc/self")); err != nil {
		return wire.Usage{}, muster.Errorf(muster.EUnavailable, "there is no /proc to take usage from").Wrap(err)
	}
	p := s.processes()
	u := wire.Usage{At: now, Processes: p.count}

	t := s.processor(now, p)
	d := t.at.Sub(s.last.at).Seconds()
	if d >= minSpan {
		is := ticks{user: rate(t.user, s.last.user, d), system: rate(t.system, s.last.system, d), wait: rate(t.wait, s.last.wait, d)}
		// A process that was missed between two places comes back as a leap.
		if s.cores == 0 || is.user+is.system <= s.cores*slack {
			s.busy = is
		}
		// The kernel's average over a minute, fed at our pace.
		f := math.Exp(-d / 60)
		s.load = s.load*f + math.Max(float64(p.running), s.busy.user+s.busy.system)*(1-f)
	}
	if d >= minSpan || d < 0 { // the clock was set back
		s.last = t
	}
	u.CPUUser, u.CPUSystem, u.CPUWait = s.busy.user, s.busy.system, s.busy.wait
	u.Load1 = s.load
	if !s.slice {
		u.Load1 = s.kernelLoad()
	}
	u.MemoryUsed, u.MemoryTotal = s.memory(p)
	if n.Memory > 0 && (u.MemoryTotal == 0 || n.Memory < u.MemoryTotal) {
		u.MemoryTotal = n.Memory
	}
	u.NetRx, u.NetTx, u.MgmtRx, u.MgmtTx = traffic(s.read("proc/net/dev"), n)
	u.DiskRead, u.DiskWrite = p.diskRead, p.diskWrite
	if !s.slice {
		u.DiskRead, u.DiskWrite = diskstats(s.read("proc/diskstats"))
	}
	u.DiskUsed, u.DiskTotal = filesystem(s.root)
	return u, nil
}

// rate is how much a grew from b in d seconds, never less than nothing: a sum
// over processes can shrink when one dies unseen.
func rate(a, b, d float64) float64 {
	return math.Round(math.Max(0, a-b)/d*1000) / 1000
}

func (s *Sampler) path(name string) string { return filepath.Join(s.root, name) }

// read returns a file's content in a buffer that the next read uses again, so
// that a sample makes next to no garbage. A file that cannot be read is empty;
// of a long one there is the beginning.
func (s *Sampler) read(name string) []byte {
	return s.readAt(unix.AT_FDCWD, s.path(name))
}

func (s *Sampler) readAt(dir int, name string) []byte {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	n := 0
	for n < 1<<20 {
		if n == len(s.buf) {
			s.buf = append(s.buf, make([]byte, len(s.buf))...)
		}
		m, err := unix.Read(fd, s.buf[n:])
		if err != nil || m <= 0 {
			break
		}
		n += m
	}
	return s.buf[:n]
}

func filesystem(path string) (used, total int64) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return 0, 0
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize, int64(st.Blocks) * st.Bsize
}

// fields makes a map of lines "name number".
func fields(b []byte, cut string) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.Lines(string(b)) {
		w := strings.Fields(strings.ReplaceAll(line, cut, " "))
		if len(w) >= 2 {
			out[w[0]] = number(w[1])
		}
	}
	return out
}
