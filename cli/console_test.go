package cli_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
)

// deaf is a shell that loses the first two ends of its input, as one does that
// is still starting, and ends with the third.
func deaf(_ context.Context, m muster.Machine, _ bool) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		if _, err := io.WriteString(far, "this is "+string(m.ID)+"\r\n"); err != nil {
			return
		}
		ends, buf := 0, make([]byte, 100)
		for ends < 3 {
			n, err := far.Read(buf)
			if err != nil {
				return
			}
			ends += bytes.Count(buf[:n], []byte{4})
			if line := strings.Trim(string(buf[:n]), "\x04\n"); line != "" {
				_, _ = io.WriteString(far, "did "+line+"\r\n")
			}
		}
	}()
	return near, nil
}

func consoleSite(t *testing.T) (*controltest.Site, *world) {
	t.Helper()
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true, Control: func(c *control.Config) { c.Console = deaf }})
	return s, at(t, s)
}

// A shell whose input ends does so too, also when it was not listening yet.
func TestShellEndsWithItsInput(t *testing.T) {
	t.Parallel()
	s, w := consoleSite(t)
	ready(t, s, w, "cfd", "-n", "1", "--head", "shared")
	w.stdin("").run("console", "cfd", "--shell").want(t, 0, "this is fake-0")
	w.stdin("hostname\n").run("console", "cfd", "n01", "--shell").want(t, 0, "did hostname")
}

// A cluster that has the name of a machine takes nobody's console.
func TestConsoleOfTwoMeanings(t *testing.T) {
	t.Parallel()
	s, w := consoleSite(t)
	c := ready(t, s, w, "cfd", "-n", "1", "--head", "shared")
	own := "fake-0" // the one that the cluster has not
	for _, n := range c.Cluster.Nodes {
		own = string(n.Machine)
	}
	twin := map[bool]string{true: "fake-02", false: "fake-01"}[own == "fake-01"]
	w.run("console", twin, "--shell").want(t, 0, "this is "+twin)
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error { // as one could be called before
		c, err := tx.Cluster(c.ID)
		c.Name = twin
		if err != nil {
			return err
		}
		return tx.PutCluster(c, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	w.refused(4, muster.ReasonAmbiguous, "console", twin, "--shell").naming("--machine "+twin, string(c.ID)+" NODE")
	w.run("console", "--machine", twin, "--shell").want(t, 0, "this is "+twin)
	w.run("console", twin, "n01", "--shell").want(t, 0, "this is "+own)
	w.refused(2, muster.ReasonBadUsage, "console", "--machine", twin, "n01")
}

// The history tells of consoles that were opened, and of no other.
func TestHistoryOfConsoles(t *testing.T) {
	t.Parallel()
	refused := true
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true, Control: func(c *control.Config) {
		c.Console = func(ctx context.Context, m muster.Machine, shell bool) (io.ReadWriteCloser, error) {
			if refused {
				return nil, muster.Errorf(muster.EInvalid, "there is no shell on it")
			}
			return deaf(ctx, m, shell)
		}
	}})
	w := at(t, s)
	ready(t, s, w, "cfd", "-n", "1", "--head", "shared")
	w.stdin("").refused(2, muster.ReasonInvalid, "console", "cfd", "--shell")
	if r := w.run("events", "cfd"); strings.Contains(r.out, "root shell") {
		t.Errorf("it was opened, says\n%s", r.out)
	}
	refused = false
	w.stdin("").run("console", "cfd", "--shell").want(t, 0, "this is fake-0")
	w.run("events", "cfd").want(t, 0, "root shell .*fake-0.")
}
