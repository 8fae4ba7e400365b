package cli_test

import (
	"testing"

	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/control/controltest"
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
	w.run("certificate", "run", "cfd", "--files", "1GiB", "--detach").want(t, 2, "by level full only")
	w.run("certificate", "run", "cfd", "--full", "--files", "900TiB", "--detach").want(t, 2, "files of 921600.0 GiB do not fit: 10.0 GiB are free where homes lie", "at most 8 GiB")
	w.run("certificate", "run", "cfd", "--full", "--files", "9GiB", "--detach").want(t, 2, "at most 8 GiB")
	w.run("certificate", "run", "cfd", "--full", "--files", "7GiB", "--detach").want(t, 0, "is being measured")
}
