package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

// looker remembers up to where it knows a cluster, as who decides about it does.
type looker struct {
	cluster           muster.ClusterID
	nodeRev, machines int64
}

// look is everything that a decision reads, as text.
func (l *looker) look(tx *store.Tx) (text string, err error) {
	c, err := tx.Cluster(l.cluster)
	if err != nil {
		return "", err
	}
	nodes, _, err := tx.NodesSince(l.cluster, l.nodeRev)
	if err != nil {
		return "", err
	}
	changed, _, err := tx.MachinesSince(l.machines)
	if err != nil {
		return "", err
	}
	site, err := tx.Site()
	if err != nil {
		return "", err
	}
	m, err := tx.Machine("m1")
	if err != nil {
		return "", err
	}
	boots, err := tx.Durations("boot", "epyc", "", 5)
	if err != nil {
		return "", err
	}
	byName, byID := map[string]muster.Node{}, map[muster.MachineID]muster.Machine{}
	for _, n := range nodes {
		byName[n.Name] = n
	}
	for _, m := range changed {
		byID[m.ID] = m
	}
	b, err := json.Marshal([]any{c, byName, byID, site, m, boots})
	return string(b), err
}

// begin reads up to where everything is known.
func (l *looker) begin(t testing.TB, db *store.DB) {
	t.Helper()
	if err := db.View(t.Context(), muster.System(), func(tx *store.Tx) (err error) {
		if _, l.nodeRev, err = tx.NodesSince(l.cluster, 0); err != nil {
			return err
		}
		if _, err = tx.Site(); err != nil {
			return err
		}
		l.machines, err = tx.MachineRevision()
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func looked(t testing.TB) (*store.DB, *looker) {
	t.Helper()
	db, err := store.Open(t.Context(), t.TempDir()+"/m.db", store.Options{Clock: storetest.NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	storetest.Free(t, db, "m1", "m2", "m3")
	c := storetest.NewCluster("one", "alice", "sea")
	if err := db.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return storetest.Place(tx, c, "m1", "m2") }); err != nil {
		t.Fatal(err)
	}
	l := &looker{cluster: c.ID}
	l.begin(t, db)
	return db, l
}

// Whatever was committed, undone or half done before: a view, and an update before
// it writes, see what is in the database, and an update sees what it has written.
func TestMemoryIsWhatTheDatabaseSays(t *testing.T) {
	t.Parallel()
	db, l := looked(t)
	view := func(r *rapid.T) (text string) {
		if err := db.View(context.Background(), muster.System(), func(tx *store.Tx) (err error) { text, err = l.look(tx); return err }); err != nil {
			r.Fatal(err)
		}
		return text
	}
	rapid.Check(t, func(r *rapid.T) {
		change := func(tx *store.Tx) error {
			for range rapid.IntRange(1, 3).Draw(r, "writes") {
				var err error
				text := rapid.StringMatching(`[a-z]{1,4}`).Draw(r, "text")
				switch rapid.IntRange(0, 3).Draw(r, "kind") {
				case 0:
					var c muster.Cluster
					if c, err = tx.Cluster(l.cluster); err == nil {
						c.Conditions = []muster.Condition{{Code: "x", Text: text}}
						err = errors.Join(tx.PutCluster(c, ""), is(text, func() ([]muster.Condition, error) {
							c, err := tx.Cluster(l.cluster)
							return c.Conditions, err
						}))
					}
				case 1:
					var n muster.Node
					name := rapid.SampledFrom([]string{"n01", "n02"}).Draw(r, "node")
					if n, err = tx.Node(l.cluster, name); err == nil {
						n.Conditions = []muster.Condition{{Code: "y", Text: text}}
						err = errors.Join(tx.PutNode(n, ""), is(text, func() ([]muster.Condition, error) {
							n, err := tx.Node(l.cluster, name)
							return n.Conditions, err
						}))
					}
				case 2:
					var m muster.Machine
					id := rapid.SampledFrom([]muster.MachineID{"m1", "m3"}).Draw(r, "machine")
					if m, err = tx.Machine(id); err == nil {
						m.Conditions = []muster.Condition{{Code: "z", Text: text}}
						err = errors.Join(tx.PutMachine(m, ""), is(text, func() ([]muster.Condition, error) {
							m, err := tx.Machine(id)
							return m.Conditions, err
						}))
					}
				default:
					err = tx.PutDuration("boot", "epyc", "img", time.Duration(rapid.IntRange(1, 99).Draw(r, "took")))
				}
				if err != nil {
					return err
				}
			}
			return nil
		}
		undo := rapid.Bool().Draw(r, "undo")
		before := view(r)
		db.WithoutMemory(func() {
			if truth := view(r); truth != before {
				r.Fatalf("a view saw\n%s\nnot\n%s", before, truth)
			}
		})
		err := db.Update(context.Background(), muster.System(), func(tx *store.Tx) error {
			if text, err := l.look(tx); err != nil || text != before {
				return fmt.Errorf("before it writes: %w\n%s\nnot\n%s", err, text, before)
			}
			if err := change(tx); err != nil {
				return err
			}
			if undo {
				return errUndone
			}
			return nil
		})
		if err != nil && !errors.Is(err, errUndone) {
			r.Fatal(err)
		}
		want := view(r)
		if undo && want != before {
			r.Fatalf("undone: %s\nnot\n%s", want, before)
		}
		if rapid.IntRange(0, 9).Draw(r, "anew") == 0 {
			l.begin(t, db)
		}
	})
}

// A view sees all of a commit or nothing of it, whoever writes meanwhile, from
// memory or from the database.
func TestAViewIsOfOneMoment(t *testing.T) {
	t.Parallel()
	db, l := looked(t)
	const rounds = 300
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer done.Store(true)
		for i := range rounds {
			text := fmt.Sprint(i)
			err := db.Update(context.Background(), muster.System(), func(tx *store.Tx) error {
				c, err := tx.Cluster(l.cluster)
				if err != nil {
					return err
				}
				n, err := tx.Node(l.cluster, "n01")
				if err != nil {
					return err
				}
				m, err := tx.Machine("m1")
				if err != nil {
					return err
				}
				c.Conditions = []muster.Condition{{Code: "x", Text: text}}
				n.Conditions, m.Conditions = c.Conditions, c.Conditions
				return errors.Join(tx.PutCluster(c, ""), tx.PutNode(n, ""), tx.PutMachine(m, ""))
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	for n := 0; !done.Load() || n == 0; {
		var texts []string
		err := db.View(t.Context(), muster.System(), func(tx *store.Tx) error {
			c, err := tx.Cluster(l.cluster)
			if err != nil {
				return err
			}
			nodes, _, err := tx.NodesSince(l.cluster, l.nodeRev)
			if err != nil {
				return err
			}
			m, err := tx.Machine("m1")
			if err != nil {
				return err
			}
			n, err := tx.Node(l.cluster, "n01")
			if err != nil {
				return err
			}
			texts = []string{text(c.Conditions), text(m.Conditions), text(n.Conditions)}
			for _, n := range nodes {
				texts = append(texts, text(n.Conditions))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n++; slices.ContainsFunc(texts, func(t string) bool { return t != texts[0] }) {
			t.Fatalf("seen at once: %q", texts)
		}
	}
	wg.Wait()
}

// A view goes on seeing what was there when it began, also of what is committed
// meanwhile, and leaves nothing outdated behind.
func TestAViewThatBeganBefore(t *testing.T) {
	t.Parallel()
	db, l := looked(t)
	db.Forget() // as after a start: durations have to be read
	var before, during, after string
	look := func(text *string) func(*store.Tx) error {
		return func(tx *store.Tx) (err error) {
			*text, err = l.look(tx)
			return err
		}
	}
	err := db.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		if err := db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
			if err := look(&before)(tx); err != nil {
				return err
			}
			m, err := tx.Machine("m1")
			if err != nil {
				return err
			}
			m.Conditions = []muster.Condition{{Code: "z", Text: "new"}}
			return errors.Join(tx.PutMachine(m, ""), tx.PutDuration("boot", "epyc", "img", 7))
		}); err != nil {
			return err
		}
		return look(&during)(tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if during != before {
		t.Errorf("a view saw\n%s\nnot\n%s", during, before)
	}
	if err := db.View(t.Context(), muster.System(), look(&after)); err != nil {
		t.Fatal(err)
	}
	db.WithoutMemory(func() {
		truth := ""
		if err := db.View(t.Context(), muster.System(), look(&truth)); err != nil || truth != after || truth == before {
			t.Errorf("%v: the next saw\n%s\nnot\n%s", err, after, truth)
		}
	})
}

// is tells when what is read is not what was written just now.
func is(want string, read func() ([]muster.Condition, error)) error {
	list, err := read()
	if err == nil && text(list) != want {
		err = fmt.Errorf("%q was written, and %q is read", want, text(list))
	}
	return err
}

func text(list []muster.Condition) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].Text
}
