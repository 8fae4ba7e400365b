package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/agent/hibernate"
	"github.com/muster-hpc/muster/agent/scratch"
	"github.com/muster-hpc/muster/agent/units"
	"github.com/muster-hpc/muster/agent/wipe"
)

// makeScratch gives the disks that this node may use file systems. It is what a unit
// starts at each boot, not a command for people.
func makeScratch(ctx context.Context, args []string, errOut io.Writer) error {
	set := flag.NewFlagSet("muster-agent scratch", flag.ContinueOnError)
	set.SetOutput(errOut)
	order := set.String("order", "/"+units.ScratchOrder, "")
	at := set.String("at", "/scratch", "")
	if err := set.Parse(args); err != nil {
		return err
	}
	disks, err := scratch.ReadOrder(*order)
	if err != nil {
		return err
	}
	m := &scratch.Maker{
		Disks: facts.Source{}.Disks, Path: wipe.Path, Find: exec.LookPath, At: *at, Clock: muster.SystemClock{}, Appear: 30 * time.Second,
		Run: func(ctx context.Context, program string, args ...string) error {
			if out, err := exec.CommandContext(ctx, program, args...).CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", program, err, strings.Join(strings.Fields(string(out)), " "))
			}
			return nil
		},
		Part: func(ctx context.Context, path string, size int64) (string, error) {
			if err := loadMapper(ctx); err != nil {
				return "", err
			}
			return hibernate.Mapper{}.Linear("muster-scratch", path, size)
		},
		Say: func(format string, args ...any) { fmt.Fprintf(errOut, format+"\n", args...) },
	}
	return m.Make(ctx, disks)
}
