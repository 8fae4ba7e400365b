package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/controltest"
	"github.com/muster-hpc/muster/store"
)

func TestScale(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 6, Build: true})
	w := at(t, s)
	w.run("create", "cfd", "-n", "2", "--head", "shared", "--wait", "--walltime", "8h").want(t, 0, "ready")
	w.run("scale", "cfd", "9").want(t, 6, "no machines of this site", "7 machines needed, 4 fit", `muster scale cfd \+4`)
	w.run("scale", "cfd").want(t, 2, "no new size")
	w.run("scale", "cfd", "0").want(t, 2, "muster delete cfd")
	w.run("scale", "cfd", "+0").want(t, 2, `"\+0" changes nothing`, `\+2`)
	w.run("scale", "cfd", "-0").want(t, 2, `"-0" changes nothing`)
	w.run("scale", "cfd", "--logins", "-1").want(t, 2, "-1 login nodes are not possible", "--logins 0")
	if r := w.run("__complete", "scale", "cfd", "--remove", "").want(t, 0, "n02"); strings.Contains(r.out, "n01") {
		t.Errorf("the head is offered: %s", r.out)
	}
	w.run("scale", "cfd", "many").want(t, 2, "no number of nodes")
	w.run("scale", "cfd", "3", "-2").want(t, 2, "two sizes")
	w.run("scale", "cfd", "-2").want(t, 2, "cannot have 0")
	w.run("scale", "cfd", "-x").want(t, 2, "unknown shorthand")
	w.run("scale", "cfd", "2").want(t, 0, "has 2 nodes already")
	w.run("scale", "cfd", "3", "--timeout", "1s").want(t, 2, "--wait")

	// Ctrl-C stops only the telling, and says how to go on.
	ctx, cancel := context.WithCancel(t.Context())
	w.wrote = func(text string) {
		if strings.Contains(text, "scaling from 2 to 4 nodes") {
			cancel()
		}
	}
	w.runCtx(ctx, "scale", "cfd", "+2", "--wait").want(t, 130, `from 2 to 4 nodes; n\[03-04\] join`, "detached: the change of cluster cfd goes on", "muster events -f c-", "muster scale cfd 2")
	w.wrote = nil
	w.run("scale", "cfd", "4", "--wait", "--timeout", "100ms").want(t, 8, "not scaled after 100ms", "muster events -f c-")

	// A change that was undone is an error, with its reason.
	var id muster.ClusterID
	for _, field := range strings.Fields(w.run("list").out) {
		if strings.HasPrefix(field, "c-") {
			id = muster.ClusterID(field)
		}
	}
	go func() {
		time.Sleep(100 * time.Millisecond)
		_ = s.Store.Update(context.Background(), muster.System(), func(tx *store.Tx) error {
			c, err := tx.Cluster(id)
			if err != nil {
				return err
			}
			c.Scaling, c.Spec.Nodes = nil, 2
			c.Conditions = append(c.Conditions, muster.Condition{Code: "scale-failed", Text: "it did not grow: n03 hangs", Hint: "scale again", Since: time.Now()})
			return tx.PutCluster(c, "undone")
		})
	}()
	w.run("scale", "cfd", "4", "--wait").want(t, 7, "n03 hangs", "scale again")
}

func TestExtendAndShare(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2, Build: true})
	w := at(t, s)
	w.run("create", "cfd", "-n", "1", "--head", "shared", "--wait", "--walltime", "8h").want(t, 0, "ready")
	w.run("extend", "cfd", "2h").want(t, 0, "lives 10h00m")
	w.run("extend", "cfd", "2").want(t, 2, "no unit")
	w.run("extend", "cfd", "-2h").want(t, 2, `"-2h" is not a time: times are positive`, "write it without the minus: 2h")
	w.run("volume", "retain", "cfd-home", "-1d").want(t, 2, `"-1d" is not a time: times are positive`)
	w.run("extend", "cfd").want(t, 2, "TIME is missing")
	w.run("share", "cfd", "bob").want(t, 0, "note: made user bob", "bob added; its users are alice bob")
	w.run("share", "cfd").want(t, 2, "USER is missing")
	w.run("unshare", "cfd").want(t, 2, "USER is missing")
	w.run("unshare", "cfd", "bob", "-o", "json").want(t, 0, `"removed": \[\s+"bob"`)
	w.run("unshare", "cfd", "alice").want(t, 2, "owns cluster cfd")
}
