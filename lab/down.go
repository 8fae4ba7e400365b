package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/process"
	"github.com/muster-hpc/muster/lab/machine"
	"github.com/muster-hpc/muster/lab/vswitch"
)

// Down takes the lab away: processes, namespaces, devices, files. It is no error
// when there is none. Files in the directory that are not the lab's stay, and are
// told of.
func (l *Lab) Down(ctx context.Context, told Told) error {
	if err := root(); err != nil {
		return err
	}
	lock, err := l.lock(ctx)
	if errors.Is(err, os.ErrNotExist) {
		return l.rest(ctx, told) // what is left of one whose directory is gone
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := l.Config(); muster.CodeOf(err) == muster.ENotFound {
		entries, err := os.ReadDir(l.dir)
		if err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !cutShort(e.Name()) }) {
			return muster.Errorf(muster.ENotFound, "there is no lab in %s", l.dir).WithHint("name the lab's directory with --dir")
		}
	}
	told.say("machines")
	l.stopMachines(ctx)
	told.say("switch")
	if err := vswitch.Stop(ctx, l.switchDir()); err != nil {
		return err
	}
	if err := l.rest(ctx, told); err != nil {
		return err
	}
	return l.remove()
}

// stopMachines asks all machines to end. Those that do not are swept away after.
func (l *Lab) stopMachines(ctx context.Context) {
	entries, _ := os.ReadDir(filepath.Join(l.dir, machineDir)) // none: nothing to stop
	var g errgroup.Group
	g.SetLimit(16)
	for _, e := range entries {
		g.Go(func() error {
			p, err := process.Find(machine.Record(l.machineDir(e.Name())))
			if err != nil {
				return nil // it does not run
			}
			defer p.Close()
			return p.Stop(ctx, 5*time.Second)
		})
	}
	_ = g.Wait()
}

// rest takes away everything of the lab that is not in its directory.
func (l *Lab) rest(ctx context.Context, told Told) error {
	n, err := process.Sweep(ctx, l.id)
	if err != nil {
		return err
	}
	if n > 0 {
		told.say("ended %d more processes", n)
	}
	told.say("network")
	return l.unwire()
}

// remove takes the lab's files away, the one that says that this is a lab last.
func (l *Lab) remove() error {
	for _, d := range []string{machineDir, switchDir} {
		if err := os.RemoveAll(filepath.Join(l.dir, d)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return err
	}
	var own, foreign []string
	for _, e := range entries {
		switch n := e.Name(); {
		case cutShort(n):
			own = append(own, n)
		case n != passwordFile && n != configFile:
			foreign = append(foreign, n)
		}
	}
	for _, f := range append(own, passwordFile, configFile) {
		if err := os.Remove(filepath.Join(l.dir, f)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if len(foreign) > 0 {
		return muster.Errorf(muster.EConflict, "the lab is gone, but %s holds what is not a lab's: %s", l.dir, foreign[0]).WithHint("look at it, and remove the directory")
	}
	return os.Remove(l.dir)
}

// cutShort reports whether a file is what a killed process left of writing one of the lab's.
func cutShort(name string) bool {
	for _, f := range []string{configFile, passwordFile} {
		if strings.HasPrefix(name, "."+f+".") && strings.HasSuffix(name, ".new") {
			return true
		}
	}
	return false
}
