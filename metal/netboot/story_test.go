package netboot_test

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster/metal/bootqueue"
	"github.com/muster-hpc/muster/metal/netboot"
)

func simMAC(n int) netboot.MAC { return netboot.MAC{2, 0, 1, 0, byte(n >> 8), byte(n)} }

// TestMachines is no test but the process in which the machines of TestStorm live:
// "boot N" or "break N" on its input has a machine start, "N ok" or "N why" on its
// output says how it went.
func TestMachines(t *testing.T) {
	wire := os.Getenv("MUSTER_NETBOOT_WIRE")
	if wire == "" {
		t.Skip("TestStorm starts it")
	}
	e, err := openEther(wire)
	if err != nil {
		t.Fatal(err)
	}
	go e.read()
	var mu sync.Mutex
	sims := map[int]*sim{}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var what string
		var n int
		if _, err := fmt.Sscan(in.Text(), &what, &n); err != nil {
			t.Fatal(err)
		}
		if sims[n] == nil {
			sims[n] = newSim(e, simMAC(n))
		}
		m := sims[n]
		go func() {
			word := "ok"
			if err := m.boot(what == "break"); err != nil {
				word = strings.ReplaceAll(err.Error(), "\n", " ")
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(os.Stderr, "machine %d %s\n", n, word)
		}()
	}
}

// heap is what the process holds after garbage is gone.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// storm starts n machines through a rack and waits until all have said hello. One
// in twenty breaks the first time.
type storm struct {
	started []int       // every start, in order
	failed  map[int]int // machine to how many had started when it failed
	queued  map[int][]int
	peak    int64
	took    time.Duration
}

func (s *site) storm(n int, in io.Writer, out <-chan string) storm {
	s.t.Helper()
	began := time.Now()
	r, err := bootqueue.New(bootqueue.Limits{Rate: 1000, Burst: 50, Window: 100, Typical: 500 * time.Millisecond, Patience: 2 * time.Minute}, began)
	if err != nil {
		s.t.Fatal(err)
	}
	w := storm{failed: map[int]int{}, queued: map[int][]int{}}
	for i := range n {
		r.Enqueue(strconv.Itoa(i), "site")
	}
	good := 0
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for good < n {
		start, late := r.Next(time.Now())
		if len(late) > 0 {
			s.t.Fatalf("given up: %v", late)
		}
		for _, m := range start {
			i, _ := strconv.Atoi(m)
			w.started = append(w.started, i)
			word := "boot"
			if i%20 == 7 && w.failed[i] == 0 {
				word = "break"
			}
			fmt.Fprintln(in, word, i)
		}
		select {
		case line, ok := <-out:
			if !ok {
				s.t.Fatal("the machines ended")
			}
			number, word, _ := strings.Cut(line, " ")
			i, err := strconv.Atoi(number)
			if err != nil {
				continue
			}
			switch {
			case word == "ok":
				good++
				r.Arrived(number, time.Now())
			case word == "broken" && i%20 == 7 && w.failed[i] == 0:
				for _, p := range r.Queue(time.Now()) {
					k, _ := strconv.Atoi(p.Machine)
					w.queued[i] = append(w.queued[i], k)
				}
				w.failed[i] = len(w.started)
				r.Failed(number)
			default:
				s.t.Fatalf("machine %d: %s\n%s", i, word, s.story(simMAC(i)))
			}
		case <-tick.C:
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			w.peak = max(w.peak, int64(m.HeapInuse))
		}
		if time.Since(began) > 5*time.Minute {
			s.t.Fatalf("only %d of %d after 5 minutes", good, n)
		}
	}
	w.took = time.Since(began)
	return w
}

// TestStorm boots hundreds of machines at once (2,000 with MUSTER_STORM=2000):
// DHCP as firmware, TFTP, DHCP as iPXE, script, kernel and initramfs by HTTP, DHCP
// as initramfs. None fails, nobody is overtaken, and in the end the service needs no
// more memory than before.
func TestStorm(t *testing.T) {
	n := 200
	if v := os.Getenv("MUSTER_STORM"); v != "" {
		n, _ = strconv.Atoi(v)
	}
	s := newSite(t, 110, func(c *netboot.Config) { c.Leases = nil })
	for i := range n {
		s.order(fmt.Sprint("boot", i), 100_000, simMAC(i))
	}
	cmd := exec.Command("nsenter", "-t", strconv.Itoa(s.netns), "-n", "/proc/self/exe", "-test.run=^TestMachines$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), "MUSTER_NETBOOT_WIRE="+s.wire)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args[5] = exe // nsenter would take itself for it
	in, _ := cmd.StdinPipe()
	errors, _ := cmd.StderrPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	out := make(chan string, 1000)
	go func() {
		defer close(out)
		for lines := bufio.NewScanner(errors); lines.Scan(); {
			if rest, ok := strings.CutPrefix(lines.Text(), "machine "); ok {
				out <- rest
			} else {
				fmt.Fprintln(os.Stderr, lines.Text())
			}
		}
	}()
	var storms [3]storm
	heaps := [4]int64{heap()}
	for i := range storms {
		storms[i] = s.storm(n, in, out)
		heaps[i+1] = heap()
		t.Logf("storm %d of %d machines: %v; heap %.1f MB before, %.1f MB after, at most %.1f MB in use",
			i+1, n, storms[i].took.Round(time.Millisecond), mb(heaps[i]), mb(heaps[i+1]), mb(storms[i].peak))
	}

	for _, w := range storms {
		seen := map[int]bool{}
		var order []int
		for _, i := range w.started {
			if !seen[i] {
				order = append(order, i)
			}
			seen[i] = true
		}
		if !slices.IsSorted(order) || len(order) != n || len(w.started) != n+len(w.failed) {
			t.Errorf("%d starts of %d machines, not in the order of their asking", len(w.started), n)
		}
		for i, waiting := range w.queued {
			again := slices.Index(w.started[w.failed[i]:], i)
			for _, k := range waiting {
				if at := slices.Index(w.started[w.failed[i]:], k); at < 0 || at > again {
					t.Errorf("machine %d failed and was started again before %d, which waited", i, k)
				}
			}
		}
		if len(w.failed) != n/20 && n%20 == 0 {
			t.Errorf("%d machines broke, not %d", len(w.failed), n/20)
		}
	}
	// A lease and the last two boots of a machine, which are remembered, are some
	// kilobytes; a third boot adds nothing but chance.
	if each := float64(heaps[2]-heaps[0]) / float64(n); each > 16<<10 {
		t.Errorf("%.0f bytes for each machine", each)
	}
	if grown := heaps[3] - heaps[2]; float64(grown) > math.Max(1<<20, 0.1*float64(heaps[2])) {
		t.Errorf("a third storm left %.1f MB more", mb(grown))
	}
	if got := len(s.Leases()); got != n {
		t.Errorf("%d leases of %d machines", got, n)
	}
	if c := s.Unanswered(); c.TFTP != 0 || c.HTTP != 0 {
		t.Errorf("left unanswered: %+v", c)
	}
}

func mb(n int64) float64 { return float64(n) / (1 << 20) }
