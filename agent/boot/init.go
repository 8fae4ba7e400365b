package boot

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/pki/attest"
	"github.com/muster-hpc/muster/wire"
)

// IsInit reports whether this program is the first process of a machine, started by
// its kernel from an initramfs; in a container the first process is somebody
// else's business.
func IsInit(args []string) bool {
	return os.Getpid() == 1 && len(args) > 0 && args[0] == "/init"
}

// lastWords is how long a message stays on the console before the machine goes off
// for a reason that nobody could tell the server.
const lastWords = 60 * time.Second

// Init is the life of a machine's first process. It does not return: the machine
// becomes its image, or goes off.
func Init(version string) {
	began := uptime()
	console := &Console{out: os.Stderr, up: uptime}
	defer func() {
		if r := recover(); r != nil {
			// The kernel would stop with a panic of its own, and the machine stay on.
			console.Say("internal: %v", r)
			_, _ = os.Stderr.Write(debug.Stack())
		}
		time.Sleep(lastWords)
		off()
	}()
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGPIPE)
	_, _ = unix.Setsid()
	if err := mountKernel(); err != nil {
		console.Fail(StageInit, err)
		return
	}
	// Ctrl-Alt-Del on the console is for the image to decide.
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF)
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		console.Fail(StageInit, err)
		return
	}
	settings, err := ParseCmdline(string(line))
	if err != nil {
		console.Fail(StageInit, err)
		return
	}
	if settings.Channel != "" {
		console.Say("init: %s, task from %s", version, settings.Channel)
	} else {
		console.Say("init: %s, boot %s, server %s", version, settings.Boot, settings.Server)
	}
	if err := run(settings, version, console, began); err != nil {
		console.Fail("boot", err)
	}
}

func run(settings Settings, version string, console *Console, began time.Duration) error {
	dir := ModulesDir()
	drivers := NewDrivers(ReadTable(dir), Sys{Modules: dir}, settings.Blacklist, func(file string, err error) {
		// Many a driver finds nothing to do: that is no failure of the boot.
		if err != unix.ENODEV { //nolint:errorlint // as the system call gives it
			console.Say("drivers: %s: %v", file, err)
		}
	})
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		drivers.Walk() // network cards first: they need some time to find their carrier
		drivers.Names("overlay", "squashfs", "loop")
	}()
	clock := muster.SystemClock{}
	root := &memoryRoot{clock: clock, ready: ready, say: console.Say}
	var greeter Greeter
	if settings.Channel != "" {
		<-ready // its task names cards and a disk
		channel, err := openChannel(settings.Channel)
		if err != nil {
			return err
		}
		greeter = channel
	} else {
		// A key waits for randomness, which a driver may bring.
		server, err := NewServer(settings, version, time.Now)
		if err != nil {
			return err
		}
		greeter, root.server = server, server
	}
	m := &Machine{
		Settings: settings, Server: greeter, Network: Links{}, Drivers: drivers, Console: console, Clock: clock, Up: uptime, Began: began,
		Root:  root,
		Facts: func() muster.Facts { return facts.Source{}.Read("", "") },
		TPM: func() Attester {
			drivers.Walk()
			t, err := attest.Open()
			if err != nil {
				if muster.CodeOf(err) != muster.ENotFound {
					console.Say("check-in: %s", describe(err))
				}
				return nil
			}
			return t
		},
		Work: newWorker(Links{}, clock).do,
		GoOn: memoryOf(drivers, clock),
		Off:  off,
		SetClock: func(t time.Time) {
			tv := unix.NsecToTimeval(t.UnixNano())
			if err := unix.Settimeofday(&tv); err != nil {
				console.Say("check-in: the clock cannot be set: %v", err)
			}
		},
	}
	return m.Run(context.Background())
}

// off switches the machine off, and does not return.
func off() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	for {
		time.Sleep(time.Hour)
	}
}

// memoryRoot keeps image and root in memory, or the image on a disk.
type memoryRoot struct {
	server *Server // nil: the task comes by a channel
	clock  muster.Clock
	ready  <-chan struct{} // the drivers of file systems are loaded
	say    func(string, ...any)
	image  *os.File
	disk   string // that holds the image; "": it is in memory
}

// Available is what the kernel says could be used without swapping.
func (m *memoryRoot) Available() int64 { return facts.Available("") }

func (m *memoryRoot) Fetch(ctx context.Context, f *wire.BootFiles) error {
	if m.image != nil {
		_ = m.image.Close()
		m.image = nil
		undoRoot()
	}
	m.disk = ""
	if f.Disk != "" {
		<-m.ready
		var err error
		m.disk, err = findDisk(ctx, "/", f.Disk, m.clock)
		return err
	}
	if m.server == nil {
		return muster.Errorf(muster.EInvalid, "the task names no disk that holds the image")
	}
	file, err := imageFile(f.Root.Size)
	if err != nil {
		return err
	}
	servers := f.Servers
	if len(servers) == 0 {
		servers = []string{m.server.Settings.Server}
	}
	fetch := &Fetcher{File: f.Root, Clock: m.clock, Say: m.say}
	if f.Plain != "" {
		fetch.Sources = append(fetch.Sources, newPlain(f.Plain))
	}
	for _, s := range servers {
		fetch.Sources = append(fetch.Sources, newWeb(s, f.Key, m.server.Settings.Authority, m.server.Now))
	}
	err = filled(file, f.Root.Size, func(b []byte) error {
		fetch.Into = b
		return m.watched(ctx, fetch)
	})
	if err != nil {
		_ = file.Close()
		return err
	}
	m.image = file
	return nil
}

// watched tells people how far it is, for those that wait longer.
func (m *memoryRoot) watched(ctx context.Context, f *Fetcher) error {
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-m.clock.After(5 * time.Second):
				m.say("image: %d of %d MiB", f.Got()>>20, f.File.Size>>20)
			}
		}
	}()
	return f.Run(ctx)
}

func (m *memoryRoot) Mount(o *wire.BootTask) error {
	<-m.ready
	mount := func() error { return mountImage(m.image) }
	if m.disk != "" {
		mount = func() error { return mountRoot(m.disk) }
	}
	if err := mount(); err != nil {
		return err
	}
	root, err := os.OpenRoot(dirRoot)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	return fill(root, o, self)
}

func (m *memoryRoot) Switch(o *wire.BootTask, st []wire.BootStage) error {
	seed := *o.Bootstrap
	if seed.CA == "" && m.server != nil {
		seed.CA = m.server.CA() // shown by the server and compared with muster.ca
	}
	if err := leave(runDir, &seed, st); err != nil {
		return fmt.Errorf("leave the seed: %w", err)
	}
	if err := unix.Sethostname([]byte(o.Hostname)); err != nil {
		return fmt.Errorf("set the host's name: %w", err)
	}
	if m.image != nil {
		_ = m.image.Close() // the loop device holds it
		m.image = nil
	}
	return switchRoot(o.Init)
}
