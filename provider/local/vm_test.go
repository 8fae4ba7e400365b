package local_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/vm/accel"
	"github.com/muster-hpc/muster/wire"
)

// vmFiles is a directory with a kernel, an initramfs and an image.
func vmFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program, err := os.ReadFile("../../vm/supervisor/testdata/guest.bin")
	if err != nil {
		t.Fatal(err)
	}
	k := make([]byte, 0x800) // as makeKernel there
	k[0x1f1] = 1
	binary.LittleEndian.PutUint16(k[0x1fe:], 0xaa55)
	copy(k[0x200:], "\xeb\x3eHdrS")
	binary.LittleEndian.PutUint16(k[0x206:], 0x0203)
	binary.LittleEndian.PutUint32(k[0x22c:], 0x37ffffff)
	copy(k[0x240:], program)
	for name, b := range map[string][]byte{"kernel": k, "initramfs": []byte("none"), "image": make([]byte, 4096)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// vmConfig is a host whose images have the kernel of package supervisor's tests: it asks for its task and says
// what came. What is left of it after the test is an error.
func vmConfig(t *testing.T) local.Config {
	t.Helper()
	if testing.Short() || os.Getuid() != 0 {
		t.Skip("starts machines in QEMU: needs root, and not with -short")
	}
	if _, err := exec.LookPath(accel.Program); err != nil {
		t.Skip("needs QEMU: scripts/setup lab")
	}
	dir := vmFiles(t)
	s, err := local.ParseSlice("2,cores=2,memory=512MiB")
	if err != nil {
		t.Fatal(err)
	}
	cfg := local.Config{
		Dir: dir, Instance: "t" + muster.RandomID(6), Slices: []local.Slice{s}, Oversubscribe: true,
		ImagePath: func(context.Context, muster.ImageID) (string, error) { return filepath.Join(dir, "image"), nil },
		Kernel: func(context.Context, muster.ImageID) (string, string, error) {
			return filepath.Join(dir, "kernel"), filepath.Join(dir, "initramfs"), nil
		},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		last, err := local.New(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := last.Destroy(ctx); err != nil {
			t.Error(err)
		}
		noTrace(t, cfg.Instance, filepath.Join(dir, "image"))
	})
	return cfg
}

func vmWants(n int, net *provider.Network) []provider.DesiredState {
	w := wants(n, net)
	for i := range w {
		w[i].VM = &muster.VMOptions{Emulate: true}
		w[i].Boot.Bootstrap = wire.Bootstrap{Server: "https://10.90.0.1:7700", CA: "none", Token: fmt.Sprintf("token-%d", i)}
	}
	return w
}

// printed waits for a line of a machine's console that begins so.
func printed(t *testing.T, p provider.Provider, id muster.MachineID, prefix string) string {
	t.Helper()
	c, err := p.Console(t.Context(), id, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	timer := time.AfterFunc(2*time.Minute, func() { _ = c.Close() })
	defer timer.Stop()
	var all strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		all.Write(buf[:n])
		for line := range strings.Lines(all.String()) {
			if rest, ok := strings.CutPrefix(line, prefix); ok && strings.HasSuffix(line, "\n") {
				return strings.TrimSpace(rest)
			}
		}
		if err != nil {
			t.Fatalf("%v; no line begins with %q in:\n%s", err, prefix, all.String())
		}
	}
}

// members are the processes in a machine's control group, by their names.
func members(t *testing.T, instance string, id muster.MachineID) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, form := range []string{"/sys/fs/cgroup/unified/muster-%s", "/sys/fs/cgroup/muster-%s", "/sys/fs/cgroup/muster.slice/muster-%s.scope"} {
		b, _ := os.ReadFile(filepath.Join(fmt.Sprintf(form, instance), string(id), "cgroup.procs"))
		for _, f := range strings.Fields(string(b)) {
			pid, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			comm, _ := os.ReadFile("/proc/" + f + "/comm")
			name := strings.TrimSpace(string(comm))
			if strings.HasPrefix(name, "vm-") || strings.HasPrefix(name, "qemu-") {
				name = "qemu"
			}
			out[name] = pid
		}
	}
	return out
}

// A slice's machine runs as a virtual machine, on the same record: with the task that it is given, in the
// control groups, under the IDs and on the networks of that slice. It is adopted, fenced and cleaned as any other.
func TestVM(t *testing.T) {
	t.Parallel()
	cfg := vmConfig(t)
	p := openConfig(t, cfg)
	net := provider.Network{Cluster: "c-test", Index: 0, Subnet: netip.MustParsePrefix("10.128.0.0/20")}
	if err := p.EnsureNetworks(t.Context(), []provider.Network{net}); err != nil {
		t.Fatal(err)
	}
	w := vmWants(2, &net)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	macs := map[string]bool{}
	for i := range w {
		r, err := wire.DecodeBootReply([]byte(printed(t, p, w[i].Machine, "first: ")))
		if err != nil {
			t.Fatal(err)
		}
		o := r.Task
		if o == nil || o.Bootstrap.Token != fmt.Sprintf("token-%d", i) || o.Bootstrap.Trust != muster.TrustLocal || o.Hostname != w[i].Boot.Hostname || o.Image.Disk == "" ||
			o.Image.Root.Size != 4096 || len(o.Links) != 2 || o.Links[0].Gateway.String() != "10.90.0.1" || o.Links[1].Address != w[i].Boot.Message.Address || time.Since(r.Now) > time.Hour {
			t.Fatalf("%+v", r)
		}
		for _, l := range o.Links {
			if macs[l.MAC] {
				t.Errorf("two cards have %s", l.MAC)
			}
			macs[l.MAC] = true
		}
		if again := printed(t, p, w[i].Machine, "again: "); strings.Contains(again, "token") {
			t.Errorf("the token is said twice: %s", again)
		}
	}
	in := members(t, cfg.Instance, w[0].Machine)
	if len(in) != 2 || in["qemu"] == 0 {
		t.Fatalf("in its groups are %v", in)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(fmt.Sprintf("/proc/%d", in["qemu"]), &st); err != nil || int(st.Uid) != local.FirstID(&cfg, 0) {
		t.Errorf("QEMU is of user %d, %v", st.Uid, err)
	}
	pinned(t, in["qemu"])
	asPlanned(t, p, w[0].Machine, in["qemu"])
	// The first process is the supervisor, one of the host: no shell leads there.
	if _, err := p.Console(t.Context(), w[0].Machine, true); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("a shell at the console: %v", err)
	}
	// Nothing changes for who asks again, and for who comes later.
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	if now := members(t, cfg.Instance, w[0].Machine); now["qemu"] != in["qemu"] {
		t.Error("it was started again")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	again := openConfig(t, cfg)
	seen, err := again.Observe(t.Context(), nil)
	if err != nil || len(seen) != 2 {
		t.Fatal(seen, err)
	}
	for _, s := range seen {
		if s.State != provider.StateRunning || s.Attempt != 1 || s.Err != nil {
			t.Errorf("%+v", s)
		}
	}
	asPlanned(t, again, w[1].Machine, members(t, cfg.Instance, w[1].Machine)["qemu"])
	if _, err := again.Clean(t.Context(), w[0].Machine); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("a machine that runs is cleaned: %v", err)
	}
	r, err := again.Fence(t.Context(), w[0].Machine)
	if err != nil || !r.Proven {
		t.Fatalf("%+v, %v", r, err)
	}
	for name, pid := range in {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(b), ") Z ") {
			t.Errorf("%s is there after the fence", name)
		}
	}
	if c, err := again.Clean(t.Context(), w[0].Machine); err != nil || !c.Verified {
		t.Errorf("%+v, %v", c, err)
	}
	if list, _ := filepath.Glob(filepath.Join(cfg.Dir, "machines", string(w[0].Machine)+"*")); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
	// One whose QEMU ends is off, and somebody hears of it.
	drain(again.Changes())
	if err := syscall.Kill(members(t, cfg.Instance, w[1].Machine)["qemu"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; {
		select {
		case <-again.Changes():
		case <-time.After(time.Until(end)):
			t.Fatal("nobody hears of the end")
		}
		seen, err := again.Observe(t.Context(), []muster.MachineID{w[1].Machine})
		if err == nil && len(seen) == 1 && seen[0].State == provider.StateOff {
			break
		}
	}
}

// virtual waits for what a provider reads back of a virtual machine: a server that finds it does so in its own time.
func virtual(t *testing.T, p provider.Provider, id muster.MachineID) *muster.VMFacts {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		seen, err := p.Observe(t.Context(), []muster.MachineID{id})
		if err != nil || len(seen) != 1 {
			t.Fatal(seen, err)
		}
		if f := seen[0].VM; f != nil {
			return f
		}
		if time.Now().After(end) {
			t.Fatal("nothing is read back")
		}
	}
}

// asPlanned sees that everything that was tuned was read back, and holds; and that what is said of huge pages is what the
// kernel says. A host without free memory in one piece has none: that is said then.
func asPlanned(t *testing.T, p provider.Provider, id muster.MachineID, qemu int) {
	t.Helper()
	f := virtual(t, p, id)
	if !f.Tuned || f.At.IsZero() {
		t.Errorf("%+v", f)
	}
	got := map[string]muster.VMFact{}
	for _, s := range f.Settings {
		got[s.Name] = s
		if !s.Holds && (s.Name != "huge-pages" || s.Cure == "") || s.Value == "" || s.Found == "" {
			t.Errorf("%+v", s)
		}
	}
	for _, name := range []string{"accelerator", "cpu", "vcpu-pins", "siblings", "host-threads", "topology", "memory", "huge-pages", "page-merging", "balloon", "nic"} {
		if got[name].Name == "" {
			t.Errorf("%s was not read back", name)
		}
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", qemu))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "HugetlbPages:")
	kb := strings.Fields(rest)[0]
	switch pages := got["huge-pages"]; {
	case strings.HasPrefix(pages.Value, "none"): // nobody asked for them
		if !pages.Holds || kb != "0" {
			t.Errorf("%s kB in huge pages: %+v", kb, pages)
		}
	case pages.Holds && (kb == "0" || got["memory"].Found == "bind:0"):
		t.Errorf("%s kB in huge pages; memory %+v, %+v", kb, got["memory"], pages)
	case !pages.Holds && kb != "0":
		t.Errorf("%s kB in huge pages: %+v", kb, pages)
	case !pages.Holds:
		t.Log("no huge pages here: ", pages.Found)
	}
	if !strings.Contains(got["nic"].Found, "2 of tap") {
		t.Errorf("%+v", got["nic"])
	}
}

// An untuned virtual machine is what QEMU makes without being asked: threads anywhere in the slice, one socket, ordinary pages, one queue.
func TestVMUntuned(t *testing.T) {
	t.Parallel()
	cfg := vmConfig(t)
	p := openConfig(t, cfg)
	w := vmWants(1, nil)
	w[0].VM.Untuned = true
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	f := virtual(t, p, w[0].Machine)
	if f.Tuned || len(f.Missed()) > 0 {
		t.Errorf("%+v", f)
	}
	qemu := members(t, cfg.Instance, w[0].Machine)["qemu"]
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", qemu))
	if err != nil {
		t.Fatal(err)
	}
	for _, tuned := range []string{"hugetlb", "host-nodes", "iothread", "mq=on", "-numa"} {
		if strings.Contains(string(line), tuned) {
			t.Errorf("%s in %q", tuned, line)
		}
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", qemu))
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]bool{}
	for _, path := range tasks {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), "Cpus_allowed_list:")
		list, _, _ := strings.Cut(rest, "\n")
		where[list] = true
	}
	if len(where) != 1 {
		t.Errorf("its threads are on %v", where)
	}
}

// pinned sees that each vCPU's thread has a hardware thread to itself, where a slice has two.
func pinned(t *testing.T, qemu int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", qemu))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for _, dir := range tasks {
		comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
		if !strings.HasPrefix(string(comm), "CPU ") {
			continue
		}
		b, _ := os.ReadFile(filepath.Join(dir, "status"))
		_, rest, _ := strings.Cut(string(b), "Cpus_allowed_list:")
		list, _, _ := strings.Cut(rest, "\n")
		list = strings.TrimSpace(list)
		if strings.ContainsAny(list, ",-") || at[list] != "" {
			t.Errorf("%s is on %s, with %q", strings.TrimSpace(string(comm)), list, at[list])
		}
		at[list] = string(comm)
	}
	if len(at) != 2 {
		t.Errorf("vCPUs on %v", at)
	}
}

func drain(c <-chan muster.MachineID) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}

// A boot that cannot be a virtual machine's is refused, and leaves the machine off.
func TestVMRefuses(t *testing.T) {
	t.Parallel()
	cfg := vmConfig(t)
	p := openConfig(t, cfg)
	net := provider.Network{Cluster: "c-test", Index: 0, Subnet: netip.MustParsePrefix("10.128.0.0/20")}
	if err := p.EnsureNetworks(t.Context(), []provider.Network{net}); err != nil {
		t.Fatal(err)
	}
	shares := vmWants(1, nil)
	shares[0].Boot.Shares = []provider.BindMount{{Path: cfg.Dir, Target: "/home"}}
	function := vmWants(1, nil)
	function[0].VM = &muster.VMOptions{Emulate: true, NIC: muster.VMNICFunction}
	for name, w := range map[string][]provider.DesiredState{"shares": shares, "function": function} {
		if errs := p.Ensure(t.Context(), w); errs == nil || muster.CodeOf(errs[0]) != muster.EInvalid && muster.CodeOf(errs[0]) != muster.EUnavailable {
			t.Errorf("%s: %v", name, errs)
		}
		seen, err := p.Observe(t.Context(), []muster.MachineID{w[0].Machine})
		if err != nil || seen[0].State != provider.StateOff {
			t.Errorf("%s: %+v, %v", name, seen, err)
		}
	}
}

// A server that is killed while it starts, fences and cleans virtual machines leaves none that the next one does not find, and
// nothing once that has ended them.
func TestKilledServerVM(t *testing.T) {
	t.Parallel()
	cfg := vmConfig(t) // cleans up as a new server would
	c := crashConfig{Dir: cfg.Dir, Instance: cfg.Instance, Image: filepath.Join(cfg.Dir, "image"), VM: true}
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for round := range 4 {
		killServer(t, &c, time.Duration(rnd.IntN(1500))*time.Millisecond)
		p, err := c.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen, err := p.Observe(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range seen {
			if s.State != provider.StateRunning && s.State != provider.StateOff || s.State == provider.StateRunning && s.Attempt < 1 {
				t.Errorf("round %d: %+v", round, s)
			}
			// A supervisor that was never told what to do ends by itself: soon there is a QEMU, or nothing.
			for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				in := members(t, cfg.Instance, s.Machine)
				if (len(in) == 0) == (in["qemu"] == 0) {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("round %d: %s, in its groups are %v", round, s.State, in)
				}
			}
		}
		if round%2 == 0 {
			err = p.Close()
		} else {
			err = p.Destroy(t.Context())
			noTrace(t, c.Instance, c.Image)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
