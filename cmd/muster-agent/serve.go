package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent"
	"github.com/muster-hpc/muster/agent/boot"
	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/agent/journal"
	"github.com/muster-hpc/muster/agent/launch"
	"github.com/muster-hpc/muster/agent/roottar"
	"github.com/muster-hpc/muster/agent/sysinfo"
	"github.com/muster-hpc/muster/agent/usage"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/sys/unix"
)

// The agent shares the node with programs that matter more.
const (
	memoryLimit = 24 << 20
	threads     = 2
)

const statusFile = "status.json"

const statusDoc document.Kind[agent.Status] = "agent-status/1"

// serve is the agent's life on a node.
func serve(ctx context.Context, f files, log *slog.Logger) error {
	debug.SetMemoryLimit(memoryLimit)
	if runtime.GOMAXPROCS(0) > threads {
		runtime.GOMAXPROCS(threads)
	}
	seed, err := agent.ReadBootstrap(f.seed)
	if err != nil {
		return err
	}
	if l, ok := takeLease(); ok {
		go l.keep(ctx)
	}
	var machine facts.Source
	dir := agent.Dir(f.state)
	var sampler *usage.Sampler
	settled := false
	var runs func(context.Context, wire.LaunchOrder) (wire.LaunchEnd, *os.File)
	if l := launch.New(launch.Options{}); l.Ready() {
		runs = l.Run
	}
	// What the first program of a bare machine timed is nearer: its kernel makes the first
	// process long before it starts a program in it.
	stages := boot.Timed(f.state)
	if len(stages) == 0 {
		stages = machine.BootStages()
	}
	host, err := boot.OpenPort()
	if err != nil {
		log.Warn("the host of this machine cannot be heard", "error", err)
	}
	return agent.Run(ctx, agent.Config{
		Bootstrap:  seed,
		Spent:      func() error { return agent.ForgetToken(f.seed) },
		Store:      dir,
		Configurer: newConfigurer(log),
		Stages:     stages,
		BootID:     machine.BootID(),
		Facts: func(l agent.Links) muster.Facts {
			return machine.Read(l.Message, l.Management)
		},
		Usage: func(l agent.Links) (wire.Usage, error) {
			if sampler == nil {
				sampler = usage.New("", time.Now())
			}
			return sampler.Sample(time.Now().UTC(), usage.Node(l))
		},
		Topology: func(ctx context.Context) *muster.Topology { return sysinfo.Source{}.Topology(ctx) },
		Seconds: func() func(time.Time) (float64, float64, float64, bool) {
			return usage.NewProcessor("", time.Now()).Sample
		},
		Journal: func(ctx context.Context, cursor string, put func(wire.JournalLine, string)) {
			journal.Follow(ctx, journal.Options{Log: log}, cursor, put)
		},
		Launch:    runs,
		Root:      func(ctx context.Context, to io.Writer) error { return roottar.Write(ctx, "/", to) },
		Goodbye:   goodbye,
		Host:      port(host),
		SetClock:  setClock,
		SetLinks:  boot.Links{}.Move,
		Became:    func(b wire.Bootstrap) error { return agent.WriteBootstrap(f.seed, b) },
		PowerOff:  powerOff("/", seed.Trust),
		Hibernate: hibernates("/", seed.Trust, log),
		Log:       log,
		Version:   versionText(),
		Status: func(s agent.Status) {
			if b, err := statusDoc.Encode(&s); err == nil {
				_ = dir.Save(statusFile, b) // for people; the next one comes soon
			}
			if !settled && s.State == agent.StateReady {
				// What the boot needed is not needed again.
				settled = true
				debug.SetGCPercent(50)
				debug.FreeOSMemory()
			}
		},
	})
}

// port is the host's port; nil, where there is none.
func port(f *os.File) io.Reader {
	if f == nil {
		return nil
	}
	return f
}

func setClock(at time.Time) error {
	t := unix.NsecToTimespec(at.UnixNano())
	return unix.ClockSettime(unix.CLOCK_REALTIME, &t)
}
