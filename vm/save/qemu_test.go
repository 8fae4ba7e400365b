package save_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/accel"
	"github.com/muster-hpc/muster/vm/jail"
	"github.com/muster-hpc/muster/vm/qemu"
	"github.com/muster-hpc/muster/vm/save"
	"github.com/muster-hpc/muster/vm/save/savetest"
	"github.com/muster-hpc/muster/vm/supervisor"
)

// TestMain lets the test binary act as a supervisor, and as what becomes QEMU in a jail.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervisor.Argument:
			os.Exit(supervisor.Run())
		case jail.Argument:
			os.Exit(jail.Enter())
		}
	}
	os.Exit(m.Run())
}

// real are machines in QEMU whose one program counts on the console, and prints what comes by its channel.
type real struct {
	*save.Machines
	dir, kernel, initrd, kind string

	mu     sync.Mutex
	counts map[string]chan int
	last   map[string]int
	heard  chan string
	booted map[string]int
	clock  fixed
	as     func(*save.Host) // what this host pretends to be
	wiped  []save.Receipt
}

// fixed is a clock of which only the time is asked.
type fixed struct {
	muster.Clock
	ahead time.Duration
}

func (f fixed) Now() time.Time { return time.Now().Add(f.ahead) }

func newReal(t *testing.T, nodes ...string) *real {
	t.Helper()
	if testing.Short() || os.Getuid() != 0 {
		t.Skip("starts machines in QEMU: needs root, and not with -short")
	}
	kind, err := qemu.Type(t.Context())
	if err != nil {
		t.Skip("needs QEMU: scripts/setup lab")
	}
	key, err := save.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &real{dir: dir, kind: kind, kernel: filepath.Join(dir, "kernel"), initrd: filepath.Join(dir, "initramfs"),
		counts: map[string]chan int{}, last: map[string]int{}, heard: make(chan string, 16), booted: map[string]int{}, clock: fixed{ahead: 3 * time.Hour}}
	r.makeKernel(t)
	r.Machines = &save.Machines{
		Store: &save.Store{Dir: filepath.Join(dir, "states")}, Key: key, Clock: &r.clock,
		Name: func(node string) string { return "c-test." + node },
		Dir:  func(node string) string { return filepath.Join(dir, node) },
		Start: func(ctx context.Context, node string) error {
			return r.start(ctx, node, true)
		},
		On: func(ctx context.Context, _ string) (save.Host, error) {
			h, err := save.ThisHost(ctx, kind, accel.Processor(false))
			if r.as != nil {
				r.as(&h)
			}
			return h, err
		},
		Erased: func(_ string, e save.Receipt) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.wiped = append(r.wiped, e)
		},
	}
	for _, n := range nodes {
		t.Cleanup(func() {
			if err := supervisor.End(context.Background(), r.Dir(n)); err != nil {
				t.Error(err)
			}
		})
		if err := r.start(t.Context(), n, false); err != nil {
			t.Fatal(err)
		}
		for r.count(t, n) < 3 { //nolint:revive // it has counted before anything happens to it
		}
	}
	return r
}

// makeKernel writes a kernel that is the guest of vm/supervisor, which counts.
func (r *real) makeKernel(t *testing.T) {
	t.Helper()
	program, err := os.ReadFile("../supervisor/testdata/guest.bin")
	if err != nil {
		t.Fatal(err)
	}
	k := make([]byte, 0x800)
	k[0x1f1] = 1
	binary.LittleEndian.PutUint16(k[0x1fe:], 0xaa55)
	copy(k[0x200:], "\xeb\x3eHdrS")
	binary.LittleEndian.PutUint16(k[0x206:], 0x0203)
	binary.LittleEndian.PutUint32(k[0x22c:], 0x37ffffff)
	copy(k[0x240:], program)
	k[0x240+len(program)-1] = 'c'
	for path, b := range map[string][]byte{r.kernel: k, r.initrd: []byte("nothing")} {
		if err := os.WriteFile(path, b, 0o444); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *real) start(ctx context.Context, node string, incoming bool) error {
	k, err := supervisor.Start(ctx, supervisor.Spec{Dir: r.Dir(node), ID: 0x6ffe5000 + int(node[len(node)-1]), Kernel: r.kernel, Initramfs: r.initrd,
		Machine: qemu.Machine{Name: node, UUID: "0f0e0d0c-0b0a-4908-8706-050403020100", Type: r.kind, Cores: 1, Memory: 128 << 20, Append: []string{"quiet"}, Incoming: incoming},
		Task:    json.RawMessage(`{"token":"a-secret-token"}`)})
	if err != nil {
		return err
	}
	defer k.Close()
	c, err := k.Console(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	counts := make(chan int, 1<<16)
	r.mu.Lock()
	r.counts[node] = counts
	r.mu.Unlock()
	go func() {
		defer c.Close()
		defer close(counts)
		for in := bufio.NewScanner(c); in.Scan(); {
			line := strings.TrimSpace(in.Text())
			if text, ok := strings.CutPrefix(line, "count: "); ok && len(text) == 4 {
				n := 0
				for _, c := range text {
					n = n<<4 | int(c-'A')
				}
				counts <- n
			}
			if text, ok := strings.CutPrefix(line, "heard: "); ok {
				r.heard <- text
			}
			if strings.HasPrefix(line, "first: ") {
				r.mu.Lock()
				r.booted[node]++
				r.mu.Unlock()
			}
		}
	}()
	return nil
}

// count is what a machine says next; what it said last, where it has ended.
func (r *real) count(t *testing.T, node string) int {
	t.Helper()
	r.mu.Lock()
	c := r.counts[node]
	r.mu.Unlock()
	for {
		select {
		case n, ok := <-c:
			if !ok {
				return r.last[node]
			}
			r.last[node] = n
			if s, err := r.Observe(t.Context(), node); err == nil && s == save.Gone {
				continue // to the end of what it said
			}
			return n
		case <-time.After(time.Minute):
			t.Fatalf("%s says nothing", node)
		}
	}
}

func (r *real) change(t *testing.T, node string, f func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(r.Store.Dir, r.Name(node)+".state")
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, f(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// QEMU's machines pass the suite: saved, ended, loaded, they count on from where they were.
func TestQEMU(t *testing.T) {
	t.Parallel()
	var r *real
	savetest.Suite(t, savetest.Subject{
		Nodes: []string{"n01", "n02"},
		Open: func(t *testing.T) save.Hypervisor {
			r = newReal(t, "n01", "n02")
			return r
		},
		Spoil: func(t *testing.T, n string) {
			r.change(t, n, func(b []byte) []byte { b[len(b)/2]++; return b })
		},
		Cut:   func(t *testing.T, n string) { r.change(t, n, func(b []byte) []byte { return b[:len(b)-100] }) },
		Count: func(t *testing.T, n string) int { return r.count(t, n) },
	})
}

// A machine that goes on hears what time it is, did not start anew, and its memory was nowhere to be read. What is of
// another kind of host is not read, and a state whose digest was changed with it is found by its encryption.
func TestQEMUState(t *testing.T) {
	t.Parallel()
	r := newReal(t, "n01")
	ctx := t.Context()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(r.Stop(ctx, "n01"))
	begin := time.Now()
	st, err := r.Save(ctx, "n01")
	do(err)
	t.Logf("%d bytes of 128 MiB in %s", st.Size, time.Since(begin))
	if st.Size > 64<<20 {
		t.Error("empty pages are written")
	}
	do(r.End(ctx, "n01"))
	b, err := os.ReadFile(filepath.Join(r.Store.Dir, "c-test.n01.state"))
	do(err)
	for _, never := range []string{"a-secret-token", "count: ", "QEMU", "pc.ram", r.Key.String()} {
		if strings.Contains(string(b), never) {
			t.Errorf("%s can be read", never)
		}
	}
	for field, as := range map[string]func(*save.Host){
		"processor": func(h *save.Host) { h.Processor = "another" }, "microcode": func(h *save.Host) { h.Microcode = "another" },
		"kernel": func(h *save.Host) { h.Kernel = "1.0" }, "qemu": func(h *save.Host) { h.QEMU = "QEMU emulator version 1.0" },
		"machine": func(h *save.Host) { h.Machine = "pc-q35-2.4" }, "model": func(h *save.Host) { h.Model = "max,-avx" },
		"cores": func(h *save.Host) { h.Cores++ }, "memory": func(h *save.Host) { h.Memory++ },
	} {
		r.as = as
		if err := r.Load(ctx, "n01", st); muster.CodeOf(err) != muster.EConflict || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	r.as = nil
	// Without its digest to find it, a wrong byte is found by the block that it is in.
	whole := st
	r.change(t, "n01", func(b []byte) []byte { b[len(b)-50000]++; return b })
	forged := st
	forged.SHA256 = digestOf(t, filepath.Join(r.Store.Dir, "c-test.n01.state"))
	if err := r.Load(ctx, "n01", forged); err == nil {
		t.Error("a forged state was loaded")
	}
	r.change(t, "n01", func(b []byte) []byte { b[len(b)-50000]--; return b })
	boots := r.booted["n01"]
	begin = time.Now()
	do(r.Load(ctx, "n01", whole))
	t.Logf("loaded in %s", time.Since(begin))
	if got, err := r.Observe(ctx, "n01"); err != nil || got != save.Stopped {
		t.Fatal(got, err)
	}
	do(r.Continue(ctx, "n01"))
	do(r.SetClock(ctx, "n01"))
	var said struct{ Clock time.Time }
	select {
	case line := <-r.heard:
		do(json.Unmarshal([]byte(line), &said))
	case <-time.After(time.Minute):
		t.Fatal("it hears nothing")
	}
	if d := time.Until(said.Clock) - 3*time.Hour; d > 0 || d < -time.Minute {
		t.Errorf("it hears %s, which is off by %s", said.Clock, d)
	}
	r.mu.Lock()
	if r.booted["n01"] != boots {
		t.Error("it started anew")
	}
	r.mu.Unlock()
	do(r.Erase(ctx, "n01"))
	if len(r.wiped) != 1 || r.wiped[0].Bytes != st.Size || !r.wiped[0].Steps[0].OK {
		t.Errorf("%+v", r.wiped)
	}
}

// A disk that is full, or a save that is given up, leaves nothing, and the machine goes on.
func TestQEMUGivenUp(t *testing.T) {
	t.Parallel()
	r := newReal(t, "n01")
	if err := r.Stop(t.Context(), "n01"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Save(ctx, "n01"); err == nil {
		t.Error("saved, though it was given up")
	}
	if list, _ := os.ReadDir(r.Store.Dir); len(list) > 0 {
		t.Errorf("%v", list)
	}
	if err := r.Continue(t.Context(), "n01"); err != nil {
		t.Fatal(err)
	}
	r.count(t, "n01")
}

func digestOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha(b))
}
