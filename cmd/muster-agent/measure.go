package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/muster-hpc/muster/agent/diskbench"
	"github.com/muster-hpc/muster/agent/netbench"
	"github.com/muster-hpc/muster/agent/rendezvous"
	"github.com/muster-hpc/muster/wire"
)

// measureFlags are what the server says of a launch.
type measureFlags struct {
	seed    uint64
	seconds float64
	meet    string
	rounds  string
}

// measure measures this node's disk, or the sockets between nodes, by programs of
// others. It is started on every node at once, by mpirun; the rank where they meet
// prints what all of them found, as muster-probe does.
func measure(ctx context.Context, what string, args []string, out, errOut io.Writer) error {
	var f measureFlags
	set := flag.NewFlagSet("muster-agent "+what, flag.ContinueOnError)
	set.SetOutput(errOut)
	set.Uint64Var(&f.seed, "seed", 1, "for what is drawn by chance")
	set.Float64Var(&f.seconds, "seconds", 1, "that each figure may take")
	set.StringVar(&f.meet, "meet", fmt.Sprintf("localhost:%d", wire.MeetPort), "where the ranks meet, HOST:PORT")
	set.StringVar(&f.rounds, "rounds", "", "of net and streams: pairs of ranks, such as 0-1 2-3/0-2 1-3; - reads a line of standard input on rank 0")
	if err := set.Parse(args); err != nil {
		return err
	}
	if !(f.seconds > 0 && f.seconds <= 600) || set.NArg() > 0 {
		return fmt.Errorf("--seconds is %g, and must be more than 0 and at most 600; %q is not understood", f.seconds, strings.Join(set.Args(), " "))
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	o, err := rendezvous.FromEnvironment(os.Getenv)
	if err != nil {
		return err
	}
	at, _, _ := strings.Cut(f.meet, ":")
	o.Host, o.At, o.Hub = host, f.meet, at == host
	w, err := rendezvous.Meet(ctx, o)
	if err != nil {
		return err
	}
	defer w.Close()
	if f.rounds == "-" {
		if f.rounds, err = sharedRounds(w, os.Stdin); err != nil {
			return err
		}
	}
	l := rendezvous.Launch{Mode: what, Seed: f.seed, Started: time.Now(), Clock: 1e-9}
	said := rendezvous.Said{Host: host}
	switch what {
	case "disk":
		said.Samples, said.Omitted = diskbench.Measure(ctx, diskbench.Options{Seconds: f.seconds, Seed: f.seed, Host: host, Rank: o.Rank})
	case "streams":
		said.Samples, said.Omitted, err = netbench.Sweep(ctx, w, netbench.Options{Seconds: f.seconds, Rounds: f.rounds})
	default:
		said.Samples, said.Omitted, err = netbench.Measure(ctx, w, netbench.Options{Seconds: f.seconds, Rounds: f.rounds})
	}
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.Tell(out, l, said)
}

// sharedRounds passes to all ranks what was written to the first one: mpirun passes on
// standard input to no other.
func sharedRounds(w *rendezvous.World, in io.Reader) (string, error) {
	var mine []byte
	if w.Rank == 0 {
		var err error
		if mine, err = io.ReadAll(io.LimitReader(in, wire.MaxLaunchInput+1)); err != nil {
			return "", fmt.Errorf("the rounds cannot be read: %w", err)
		}
		if n := len(mine); n == 0 || n > wire.MaxLaunchInput || mine[n-1] != '\n' {
			return "", fmt.Errorf("the rounds are not one line of at most %d bytes", wire.MaxLaunchInput)
		}
	}
	all, err := w.All(mine)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(all[0])), nil
}
