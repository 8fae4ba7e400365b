package local_test

import (
	"os"
	"testing"

	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/vm/jail"
	"github.com/muster-hpc/muster/vm/supervisor"
)

// TestMain lets the test binary act as the first process of a machine, as what runs scripts of
// packages while an image is built, as a server to be killed, and
// as what an emulated host and its virtual machines start with.
func TestMain(m *testing.M) {
	if os.Getpid() == 1 && os.Args[0] == "/init" {
		vmHostInit()
	}
	if len(os.Args) > 1 && os.Args[1] == local.InitArgument {
		os.Exit(local.MachineInit())
	}
	if len(os.Args) > 1 && os.Args[1] == image.ConfineArgument {
		os.Exit(image.Confine(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == supervisor.Argument {
		os.Exit(supervisor.Run())
	}
	if len(os.Args) > 1 && os.Args[1] == jail.Argument {
		os.Exit(jail.Enter())
	}
	if c := os.Getenv(serverVariable); c != "" {
		os.Exit(crashingServer(c))
	}
	if dir := os.Getenv(hostServerVariable); dir != "" {
		os.Exit(hostServer(dir))
	}
	os.Exit(m.Run())
}
