package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
)

func TestScale(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 6, Build: true})
	w := at(t, s)
	w.run("create", "cfd", "-n", "2", "--head", "shared", "--wait", "--walltime", "8h").want(t, 0, "ready")
	w.refused(6, muster.ReasonNeverFits, "scale", "cfd", "9").naming("7", "4", `muster scale cfd \+4`)
	w.refused(2, muster.ReasonRequired, "scale", "cfd")
	w.refused(2, muster.ReasonNoNodeLeft, "scale", "cfd", "0").naming("muster delete cfd")
	w.refused(2, muster.ReasonBadValue, "scale", "cfd", "+0").naming(`\+0`, `\+2`)
	w.refused(2, muster.ReasonBadValue, "scale", "cfd", "-0").naming("-0")
	w.refused(2, muster.ReasonOutOfRange, "scale", "cfd", "--login-nodes", "-1").naming("-1", "--login-nodes")
	if r := w.run("__complete", "scale", "cfd", "--remove", "").want(t, 0, "n02"); strings.Contains(r.out, "n01") {
		t.Errorf("the head is offered: %s", r.out)
	}
	w.refused(2, muster.ReasonBadValue, "scale", "cfd", "many")
	w.refused(2, muster.ReasonBadUsage, "scale", "cfd", "3", "-2")
	w.refused(2, muster.ReasonNoNodeLeft, "scale", "cfd", "-2").naming("0")
	w.refused(2, muster.ReasonUnknownFlag, "scale", "cfd", "-x")
	w.run("scale", "cfd", "2").want(t, 0, "has 2 nodes already")
	w.refused(2, muster.ReasonContradiction, "scale", "cfd", "3", "--timeout", "1s").naming("--wait")

	// Ctrl-C stops only the telling, and says how to go on.
	ctx, cancel := context.WithCancel(t.Context())
	w.wrote = func(text string) {
		if strings.Contains(text, "scaling from 2 to 4 nodes") {
			cancel()
		}
	}
	w.runCtx(ctx, "scale", "cfd", "+2", "--wait").want(t, 130, `from 2 to 4 nodes; n\[03-04\] join`, "detached: .*cfd", "muster events -f c-", "muster scale cfd 2")
	w.wrote = nil
	w.refused(8, muster.ReasonNotDoneYet, "scale", "cfd", "4", "--wait", "--timeout", "100ms").naming("100ms", "muster events -f c-")

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
			c.Conditions = append(c.Conditions, muster.Condition{Code: "scale-failed", Text: "n03 hangs", Hint: "scale again", Since: time.Now()})
			return tx.PutCluster(c, "undone")
		})
	}()
	w.refused(7, muster.ReasonScaleFailed, "scale", "cfd", "4", "--wait").naming("n03")
}

func TestExtendAndShare(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2, Build: true})
	w := at(t, s)
	w.run("create", "cfd", "-n", "1", "--head", "shared", "--wait", "--walltime", "8h").want(t, 0, "ready")
	w.run("extend", "cfd", "2h").want(t, 0, "lives 10h00m")
	w.refused(2, muster.ReasonBadValue, "extend", "cfd", "2")
	w.refused(2, muster.ReasonBadValue, "extend", "cfd", "-2h").naming("-2h", " 2h")
	w.refused(2, muster.ReasonBadValue, "volume", "retain", "cfd-home", "-1d").naming("-1d")
	w.refused(2, muster.ReasonBadUsage, "extend", "cfd").naming("TIME")
	w.run("share", "cfd", "bob").want(t, 0, "note: .*bob", "bob .*alice bob")
	w.refused(2, muster.ReasonBadUsage, "share", "cfd").naming("USER")
	w.refused(2, muster.ReasonBadUsage, "unshare", "cfd").naming("USER")
	w.run("unshare", "cfd", "bob", "-o", "json").want(t, 0, `"removed": \[\s+"bob"`)
	w.refused(2, muster.ReasonOwnerStays, "unshare", "cfd", "alice").naming("cfd")
}
