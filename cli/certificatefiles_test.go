package cli_test

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
)

// What is to be written to files fits where homes lie, or is refused before a byte of it
// is written.
func TestFilesFit(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true, Control: func(c *control.Config) {
		c.HomeFree = func() int64 { return 10 << 30 }
	}})
	w := at(t, s)
	ready(t, s, w, "cfd", "-n", "1", "--head", "shared")
	w.refused(2, muster.ReasonContradiction, "certificate", "run", "cfd", "--files", "1GiB", "--detach")
	w.refused(2, muster.ReasonNotEnoughDisk, "certificate", "run", "cfd", "--full", "--files", "900TiB", "--detach").naming("921600.0 GiB", "10.0 GiB")
	w.refused(2, muster.ReasonNotEnoughDisk, "certificate", "run", "cfd", "--full", "--files", "9GiB", "--detach").naming("8 GiB")
	w.run("certificate", "run", "cfd", "--full", "--files", "7GiB", "--detach").want(t, 0, "is being measured")
}
