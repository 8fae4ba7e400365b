package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/agent/hibernate"
	"github.com/muster-hpc/muster/wire"
)

// loadMapper loads what an encrypted part of a disk needs of the kernel, unless the machine's first program did.
func loadMapper(ctx context.Context) error {
	if _, err := os.Stat("/sys/module/dm_crypt"); err == nil {
		return nil
	}
	for _, module := range []string{"dm-mod", "dm-crypt", "xts"} {
		if out, err := exec.CommandContext(ctx, "modprobe", module).CombinedOutput(); err != nil {
			return muster.Errorf(muster.EUnavailable, "the kernel's module %s cannot be loaded", module).
				WithHint("the image needs kmod and the modules dm-mod, dm-crypt and xts of its kernel").Wrap(fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out))))
		}
	}
	return nil
}

// hibernates returns what has this machine hibernate; nil on one that is a slice of a host, or a
// virtual machine's.
func hibernates(root string, trust muster.Trust, log *slog.Logger) func(context.Context, wire.MemoryArea, func()) (wire.HostJoin, error) {
	if trust == muster.TrustLocal || inContainer(root) {
		return nil
	}
	return func(ctx context.Context, area wire.MemoryArea, last func()) (wire.HostJoin, error) {
		var k hibernate.Kernel
		if why := k.Why(); len(why) > 0 {
			return wire.HostJoin{}, muster.Errorf(muster.EConflict, "this machine cannot hibernate: %s", strings.Join(why, "; "))
		}
		if err := loadMapper(ctx); err != nil {
			return wire.HostJoin{}, err
		}
		a, err := hibernate.OpenArea(facts.Source{}.Disks(), area)
		if err != nil {
			return wire.HostJoin{}, err
		}
		if err := errors.Join(a.Format(), a.Swap()); err != nil {
			return wire.HostJoin{}, errors.Join(err, a.Close())
		}
		// What was written out comes back by and by; nobody waits for that.
		end := func() {
			if err := errors.Join(a.Unswap(), a.Void(), a.Close()); err != nil {
				log.Error("erasing what was written of the memory failed", "error", err)
			}
		}
		last()
		if err := k.Suspend(); err != nil {
			go end()
			return wire.HostJoin{}, err
		}
		if err := k.EndConnections(ctx); err != nil {
			log.Warn("connections to the servers of volumes may hang", "error", err)
		}
		note, err := a.Note()
		go end()
		return note, err
	}
}
