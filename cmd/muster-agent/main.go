// Command muster-agent runs inside every node: it joins the node to its
// server, has its configuration applied and reports. See docs/internals/agent.md. As the
// first process of a machine it boots the node: see docs/internals/nodeboot.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/muster-hpc/muster/agent"
	"github.com/muster-hpc/muster/agent/boot"
)

// version is set by the linker.
var version string

const usageText = `muster-agent keeps this node in touch with its Muster server.

usage: muster-agent [run|show|conditions|disk|net|version] [--seed FILE] [--state DIR]

  run      join the server and stay (what the service does; the default)
  show     what this node is, what it was told, and when the server last answered
  conditions  what changes the figures of this node, as one line of JSON; started by mpirun,
           one node prints the lines of all
  disk, net  measure this node's disk with fio, and what is between nodes with
           iperf3: started on all nodes at once, by mpirun
  version  the version of this program
`

// files are where the agent finds and keeps things on a node.
type files struct {
	seed  string
	state string
}

func main() {
	switch {
	case boot.IsInit(os.Args): // the first process of a machine
		boot.Init(versionText())
	case len(os.Args) == 2 && os.Args[1] == cutPower:
		// No signal ends it: it is started when everything else is to end.
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		os.Exit(status(cutThisPower("/"), os.Stderr))
	case boot.IsModprobe(os.Args):
		os.Exit(boot.Modprobe(os.Args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command runs one command and returns the exit status.
func command(ctx context.Context, args []string, out, errOut io.Writer) int {
	name := "run"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		name, args = args[0], args[1:]
	}
	if name == "disk" || name == "net" || name == "streams" {
		return status(measure(ctx, name, args, out, errOut), errOut)
	}
	if name == "scratch" { // a unit's, not people's
		return status(makeScratch(ctx, args, errOut), errOut)
	}
	if name == "end-job" { // Slurm's, not people's
		return status(endJob(), errOut)
	}
	var f files
	set := flag.NewFlagSet("muster-agent", flag.ContinueOnError)
	set.SetOutput(errOut)
	set.Usage = func() { _, _ = io.WriteString(errOut, usageText) }
	set.StringVar(&f.seed, "seed", "/run/muster/seed.json", "")
	set.StringVar(&f.state, "state", "/run/muster", "")
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	var err error
	switch name {
	case "run":
		err = serve(ctx, f, newLog(errOut))
	case "show":
		err = show(f, out)
	case "conditions":
		err = tellConditions(ctx, out)
	case "version":
		_, err = fmt.Fprintln(out, versionText())
	default:
		fmt.Fprintf(errOut, "muster-agent has no command %q\n%s", name, usageText)
		return 2
	}
	return status(err, errOut)
}

// status reports what went wrong, and returns the exit status.
func status(err error, errOut io.Writer) int {
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	default:
		fmt.Fprintln(errOut, "muster-agent: "+agent.Describe(err))
		return 1
	}
}

func versionText() string {
	if version == "" {
		return "development"
	}
	return version
}
