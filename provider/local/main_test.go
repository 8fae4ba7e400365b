package local_test

import (
	"os"
	"testing"

	"github.com/muster-hpc/muster/provider/local"
)

// TestMain lets the test binary act as the first process of a machine, and as a server to be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == local.InitArgument {
		os.Exit(local.MachineInit())
	}
	if c := os.Getenv(serverVariable); c != "" {
		os.Exit(crashingServer(c))
	}
	os.Exit(m.Run())
}
