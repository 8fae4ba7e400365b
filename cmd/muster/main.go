// Command muster is the server, the command line, the supervisor of a virtual machine
// and, for the few milliseconds before an image's own init takes over, the first process of a
// local machine.
package main

import (
	"context"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/cli"
	"github.com/muster-hpc/muster/gateway/flow"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/storage/image/recipes"
	"github.com/muster-hpc/muster/vm/accel"
	"github.com/muster-hpc/muster/vm/jail"
	"github.com/muster-hpc/muster/vm/supervisor"
)

// version is set by the linker.
var version string

func main() { os.Exit(run(nil)) }

// run is this program by a clock; nil: this computer's.
func run(clock muster.Clock) int {
	// Before anything else: this process may be about to become process 1 of a
	// machine, where there is no terminal, no network and no time to lose.
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case local.InitArgument:
			return local.MachineInit()
		case supervisor.Argument:
			return supervisor.Run()
		case jail.Argument:
			return jail.Enter()
		case image.ConfineArgument:
			return image.Confine(os.Args[2:])
		}
	}
	if version == "" {
		version = "dev"
	}
	return cli.Run(context.Background(), environment(clock), os.Args[1:])
}

// environment is the world of the commands, with those that only this program has.
func environment(clock muster.Clock) cli.Env {
	env := cli.SystemEnv()
	env.Version = version
	env.Recipes = []fs.FS{recipes.Recipes()}
	env.Doctor = []func(context.Context) []cli.Check{hostChecks}
	env.VMHost.Executes = accel.KVMWorks
	env.ServeGateway = serveGateway
	env.Extra = []*cobra.Command{serveCommand(version, clock), cleanupCommand(), backupCommand(), restoreCommand(), adoptCommand(), labCommand(), labMachineCommand(), fakeAgentsCommand()}
	return env
}

// hostChecks are what local machines need of this host.
func hostChecks(ctx context.Context) []cli.Check {
	var out []cli.Check
	for _, c := range local.Doctor(ctx) {
		check := cli.Check{Name: c.Name, OK: c.OK, Text: c.Found, Fix: c.Fix, Package: c.Package}
		if !c.OK {
			check.Level = "error"
			if c.Warning {
				check.Level = "warning"
			}
		}
		out = append(out, check)
	}
	return append(out, flowCheck())
}

// flowCheck is what the kernel's way of the gateway's straight door needs of this host.
func flowCheck() cli.Check {
	missing := flow.Missing(flow.Config{})
	if len(missing) == 0 {
		return cli.Check{Name: "gateway-flows", OK: true, Text: "the kernel can let connections through to bare machines (serve --gateway-flows)"}
	}
	return cli.Check{Name: "gateway-flows", Level: "warning", Text: "the gateway passes connections on itself: " + strings.Join(missing, "; "), Fix: "see docs/operators/gateway.md, only where serve --gateway-flows is wanted"}
}
