package boot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// Kernel is what drivers need of the kernel.
type Kernel interface {
	// Modaliases lists the devices that there are now.
	Modaliases() []string
	// Load loads one module file, below the folder of modules. One that is loaded
	// already is no error.
	Load(file string) error
}

// atOnce is how many modules are loaded at the same time: most of the time of a
// driver goes into waiting for its device.
const atOnce = 4

// Drivers loads drivers for devices as they appear. It is safe for concurrent use.
type Drivers struct {
	table     *Table
	kernel    Kernel
	blacklist map[string]bool
	failed    func(file string, err error)

	walk  sync.Mutex // who looks while another one loads waits for that
	mu    sync.Mutex
	known map[string]bool        // modaliases that were looked at
	files map[string]*sync.Mutex // one load at a time of each file
	done  map[string]bool        // files that are loaded, or failed
}

// NewDrivers makes Drivers. failed is told of each module that is not loaded; nil:
// nobody is.
func NewDrivers(t *Table, k Kernel, blacklist []string, failed func(file string, err error)) *Drivers {
	d := &Drivers{
		table: t, kernel: k, failed: failed, blacklist: map[string]bool{},
		known: map[string]bool{}, files: map[string]*sync.Mutex{}, done: map[string]bool{},
	}
	if d.failed == nil {
		d.failed = func(string, error) {}
	}
	for _, b := range blacklist {
		d.blacklist[b] = true
	}
	return d
}

// Walk looks for devices that were not seen before and loads what is for them. It
// returns how many modules it loaded for: a driver may bring new devices, so the
// caller walks again until there is nothing.
func (d *Drivers) Walk() int {
	d.walk.Lock()
	defer d.walk.Unlock()
	var nets, names []string // network cards first: all else goes on while they are asked
	seen := map[string]bool{}
	for _, m := range d.kernel.Modaliases() {
		d.mu.Lock()
		old := d.known[m]
		d.known[m] = true
		d.mu.Unlock()
		if old {
			continue
		}
		for _, n := range d.table.For(m) {
			if d.blacklist[n] || seen[n] {
				continue
			}
			seen[n] = true
			names = append(names, companions(n)...)
			if strings.Contains(d.table.files[n], "/net/") {
				nets = append(nets, n)
			} else {
				names = append(names, n)
			}
		}
	}
	d.Names(nets...)
	d.Names(names...)
	return len(nets) + len(names)
}

// companions are modules that the kernel has user space load after another one: those that
// make interfaces of the ports of InfiniBand cards.
func companions(module string) []string {
	switch module {
	case "mlx4_core":
		return []string{"mlx4_en", "mlx4_ib", "ib_ipoib"}
	case "mlx5_ib", "hfi1", "ib_qib":
		return []string{"ib_ipoib"}
	}
	return nil
}

// Names loads modules by name, some at a time, and what they need. What is built in
// or not there is no error here: what is missing shows later.
func (d *Drivers) Names(names ...string) {
	turns := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, n := range names {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			files, ok := d.table.Order(n)
			if !ok {
				return
			}
			for _, f := range files {
				d.load(f)
			}
		})
	}
	all.Wait()
}

// load loads a file once. Who comes second waits until it is loaded.
func (d *Drivers) load(file string) {
	d.mu.Lock()
	one := d.files[file]
	if one == nil {
		one = new(sync.Mutex)
		d.files[file] = one
	}
	d.mu.Unlock()
	one.Lock()
	defer one.Unlock()
	d.mu.Lock()
	done := d.done[file]
	d.done[file] = true
	d.mu.Unlock()
	if done {
		return
	}
	if err := d.kernel.Load(file); err != nil {
		d.failed(file, err)
	}
}

// longestWatch is the longest pause between two looks: what appears is seen after
// at most twice the time that it took by itself, and looking takes little from the rest.
const longestWatch = 5 * time.Second

// Watch walks again and again until ctx ends: some devices appear long after the
// first look, such as those behind a controller that has to start itself.
func (d *Drivers) Watch(ctx context.Context, c muster.Clock) {
	p := 20 * time.Millisecond
	for {
		if d.Walk() > 0 {
			p = 20 * time.Millisecond
		} else {
			p = min(2*p, longestWatch)
		}
		if sleep(ctx, c, p) != nil {
			return
		}
	}
}

// Sys is the kernel of this machine.
type Sys struct {
	// Modules is the folder of the modules of the running kernel.
	Modules string
	// Root is that of /sys; "" is /.
	Root string
}

// Modaliases reads them from /sys/devices.
func (s Sys) Modaliases() []string {
	var out []string
	_ = filepath.WalkDir(filepath.Join("/", s.Root, "sys/devices"), func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != "modalias" || !e.Type().IsRegular() {
			return nil //nolint:nilerr // a device that went away meanwhile
		}
		b, err := os.ReadFile(name)
		if text := strings.TrimSpace(string(b)); err == nil && text != "" && len(text) < 4096 {
			out = append(out, text)
		}
		return nil
	})
	return out
}

// Load gives a module to the kernel.
func (s Sys) Load(file string) error {
	f, err := os.Open(filepath.Join(s.Modules, file))
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), "", 0)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// ReadTable reads the table of modules in a folder.
func ReadTable(dir string) *Table {
	var text [4]string
	for i, name := range []string{"modules.dep", "modules.alias", "modules.softdep", "modules.builtin"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			text[i] = string(b)
		}
	}
	return ParseTable(text[0], text[1], text[2], text[3])
}

// ModulesDir is the folder of the running kernel's modules.
func ModulesDir() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "/lib/modules"
	}
	return filepath.Join("/lib/modules", unix.ByteSliceToString(u.Release[:]))
}

// Modprobe loads modules by name or alias: what the kernel starts when it wants a
// driver itself. Arguments are those of the program modprobe; options are ignored.
func Modprobe(args []string) int {
	dir := ModulesDir()
	t := ReadTable(dir)
	d := NewDrivers(t, Sys{Modules: dir}, nil, nil)
	code := 0
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			continue
		}
		names := t.For(a)
		if len(names) == 0 && !t.builtin[canonical(a)] {
			code = 1
		}
		d.Names(names...)
	}
	return code
}
