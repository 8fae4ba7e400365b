// Command muster is the server, the command line and, for the few
// milliseconds before an image's own init takes over, the first process of a
// local machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/muster-hpc/muster/cli"
	"github.com/muster-hpc/muster/provider/local"
)

// version is set by the linker.
var version string

func main() {
	// Before anything else: this process may be about to become process 1 of a
	// machine, where there is no terminal, no network and no time to lose.
	if len(os.Args) > 1 && os.Args[1] == local.InitArgument {
		os.Exit(local.MachineInit())
	}
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if version == "" {
		version = "dev"
	}
	env := cli.System(version)
	env.Extra = []*cobra.Command{serveCommand(version), cleanupCommand()}
	root := cli.New(env)
	err := root.ExecuteContext(ctx)
	if err != nil {
		if text := cli.ErrorText(err); text != "" {
			fmt.Fprintln(os.Stderr, text)
		}
	}
	return cli.ExitCode(err)
}
