package converge

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// What keeps a cluster from being prepared is told with its cause and its cure: while it is
// tried again, and when it was given up.
func TestReasonsOfPreparing(t *testing.T) {
	t.Parallel()
	full := muster.Errorf(muster.EUnavailable, "volume home cannot be mounted").WithHint("is the disk full?").
		Wrap(&fs.PathError{Op: "mkdir", Path: "/v", Err: errors.New("no space left on device")})
	waits := decided(t, two(muster.ClusterBuilding, muster.NodeAssigned, func(v *View) { v.Prepared = Work{Err: full, Tries: 1, Retry: at(200)} }))
	var text, hint string
	for _, c := range waits.Conditions {
		text, hint = text+c.Text, hint+c.Hint
	}
	for _, part := range []string{"volume home cannot be mounted", "no space left on device"} {
		if !strings.Contains(text, part) {
			t.Errorf("the condition has no %q: %q", part, text)
		}
	}
	if !strings.Contains(hint, "is the disk full?") || !strings.Contains(hint, "tried again") {
		t.Errorf("%q", hint)
	}
	packages := muster.Errorf(muster.EInvalid, "the image cannot be built").Listing([]muster.Problem{{Field: "packages[0]", Message: "there is no package gbd", Hint: "did you mean gdb?"}})
	ends := decided(t, two(muster.ClusterBuilding, muster.NodeAssigned, func(v *View) { v.Prepared = Work{Err: packages.Wrap(full), Tries: 1, Retry: at(200)} }))
	why := ends.Reason
	if why == nil || len(why.Problems) != 1 || !strings.Contains(why.Message, "no space left on device") {
		t.Errorf("%+v", why)
	}
}

// decided is the cluster as it is written after a decision.
func decided(t *testing.T, v View) muster.Cluster {
	t.Helper()
	list, _ := Decide(v)
	for _, a := range list {
		if set, ok := a.(SetCluster); ok {
			return set.Cluster
		}
	}
	t.Fatalf("nothing is written: %+v", list)
	return muster.Cluster{}
}

// The log has why a cluster could not be prepared.
func TestLogOfPreparing(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out bytes.Buffer
	v, err := New(Config{Store: db, Seed: func(muster.Machine) wire.Bootstrap { return wire.Bootstrap{} }, Log: slog.New(slog.NewTextHandler(&out, nil))})
	if err != nil {
		t.Fatal(err)
	}
	v.ctx = t.Context()
	v.beside("c-1", func(w *clusterWork) *Work { return &w.prepared }, func(context.Context) error {
		return muster.Errorf(muster.EUnavailable, "volume home cannot be mounted").Wrap(errors.New("no space left on device"))
	})
	v.calls.Wait()
	if !strings.Contains(out.String(), "no space left on device") || !strings.Contains(out.String(), "c-1") {
		t.Errorf("the log: %q", out.String())
	}
}
