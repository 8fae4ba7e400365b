package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

// errUndone undoes a change.
var errUndone = errors.New("undone")

// Who keeps records by asking for what changed since has at any time what a look
// at all of them shows: while others change them, and undo changes, and although
// nothing is looked up where nothing is newer.
func TestSinceMissesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, store.Options{})
	names := []muster.MachineID{"m1", "m2", "m3", "m4"}
	storetest.Free(t, db, names...)
	clusters := []muster.Cluster{storetest.NewCluster("one", "alice", "sea"), storetest.NewCluster("two", "alice", "sea")}
	if err := db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		return errors.Join(storetest.Place(tx, clusters[0], names[:2]...), storetest.Place(tx, clusters[1], names[2:]...))
	}); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers, readers sync.WaitGroup
	for w := range 3 {
		draw := rand.New(rand.NewPCG(seed, uint64(w)))
		writers.Go(func() {
			for i := range 150 {
				c, name := clusters[draw.IntN(2)], []string{"n01", "n02"}[draw.IntN(2)]
				id, undo, text := names[draw.IntN(4)], draw.IntN(3) == 0, fmt.Sprintf("%d of %d", i, w)
				err := db.Update(ctx, muster.System(), func(tx *store.Tx) error {
					if draw.IntN(2) == 0 {
						n, err := tx.Node(c.ID, name)
						if err != nil {
							return err
						}
						n.Conditions = []muster.Condition{{Code: "test", Text: text}}
						if err := tx.PutNode(n, ""); err != nil {
							return err
						}
					} else {
						m, err := tx.Machine(id)
						if err != nil {
							return err
						}
						m.Note = text
						if err := tx.PutMachine(m, ""); err != nil {
							return err
						}
						site, err := tx.Site()
						if i := slices.IndexFunc(site, func(m muster.Machine) bool { return m.ID == id }); err != nil || i < 0 || site[i].Note != text {
							return fmt.Errorf("the site does not show its own change: %w", err)
						}
					}
					if undo {
						return errUndone
					}
					return nil
				})
				if err != nil && !errors.Is(err, errUndone) {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	keepers := []*keeper{{t: t, db: db, cluster: clusters[0].ID}, {t: t, db: db, cluster: clusters[1].ID}}
	for _, k := range keepers {
		readers.Go(func() {
			for ctx.Err() == nil && k.look() {
			}
		})
	}
	writers.Wait()
	cancel()
	readers.Wait()
	for _, k := range keepers {
		for range 2 { // the first look may find the last changes
			if !t.Failed() {
				k.look()
			}
		}
		if k.came != 0 {
			t.Errorf("at rest %d records changed", k.came)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	// Another process knows nothing of what this one did.
	again := &keeper{t: t, db: open(t, dir, store.Options{}), cluster: clusters[1].ID}
	if !again.look() || again.came != 6 || !slices.Equal(again.texts(), keepers[1].texts()) {
		t.Errorf("after a restart %d came: %v, want %v", again.came, again.texts(), keepers[1].texts())
	}
}

// keeper keeps the nodes of a cluster and all machines by their changes.
type keeper struct {
	t               *testing.T
	db              *store.DB
	cluster         muster.ClusterID
	nodesAt, machAt int64
	have            map[string]string
	came            int
}

// look asks what changed, and compares with all there is at that time.
func (k *keeper) look() bool {
	if k.have == nil {
		k.have = map[string]string{}
	}
	all := map[string]string{}
	err := k.db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
		nodes, err := tx.Nodes(k.cluster) // first: what is read then is what the view sees
		if err != nil {
			return err
		}
		machines, err := tx.Machines(store.MachineFilter{})
		if err != nil {
			return err
		}
		k.tell(all, nodes, machines)
		if site, err := tx.Site(); err != nil || !reflect.DeepEqual(site, machines) {
			k.t.Errorf("the site is %+v, not %+v: %v", site, machines, err)
		}
		if nodes, k.nodesAt, err = tx.NodesSince(k.cluster, k.nodesAt); err != nil {
			return err
		}
		if machines, k.machAt, err = tx.MachinesSince(k.machAt); err != nil {
			return err
		}
		k.came = len(nodes) + len(machines)
		k.tell(k.have, nodes, machines)
		return nil
	})
	if err != nil {
		k.t.Error(err)
		return false
	}
	for name, text := range all {
		if k.have[name] != text {
			k.t.Errorf("%s is %q, and by its changes %q", name, text, k.have[name])
			return false
		}
	}
	return true
}

func (k *keeper) tell(to map[string]string, nodes []muster.Node, machines []muster.Machine) {
	for _, n := range nodes {
		text := strconv.Itoa(len(n.Conditions))
		for _, c := range n.Conditions {
			text = c.Text
		}
		to["node "+n.Name] = text
	}
	for _, m := range machines {
		to["machine "+string(m.ID)] = m.Note
	}
}

func (k *keeper) texts() (out []string) {
	for name, text := range k.have {
		out = append(out, name+": "+text)
	}
	slices.Sort(out)
	return out
}
