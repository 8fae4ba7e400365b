package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

// BenchmarkUpdate changes the phase of a machine, with its audit line, from
// several goroutines. One operation is one durable Update.
func BenchmarkUpdate(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			db := open(b, b.TempDir(), store.Options{})
			var ids []muster.MachineID
			for w := range writers {
				ids = append(ids, muster.MachineID(fmt.Sprintf("m%d", w)))
			}
			storetest.Free(b, db, ids...)
			b.ResetTimer()
			before := db.Stats()
			var wg sync.WaitGroup
			for w := range writers {
				n := b.N / writers
				if w < b.N%writers {
					n++
				}
				wg.Go(func() {
					for range n {
						if err := toggle(db, ids[w]); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			after := db.Stats()
			if commits := after.Commits - before.Commits; commits > 0 {
				b.ReportMetric(float64(b.N)/float64(commits), "updates/commit")
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
		})
	}
}

func toggle(db *store.DB, id muster.MachineID) error {
	return db.Update(context.Background(), muster.System(), func(tx *store.Tx) error {
		m, err := tx.Machine(id)
		if err != nil {
			return err
		}
		if m.Phase == muster.MachineFree {
			m.Phase = muster.MachineCleaning
		} else {
			m.Phase = muster.MachineFree
		}
		return tx.PutMachine(m, "")
	})
}

const many = 10000

// BenchmarkMachines lists ten thousand machines: what every placement does.
func BenchmarkMachines(b *testing.B) {
	dir := b.TempDir()
	db := open(b, dir, store.Options{})
	var ids []muster.MachineID
	for i := range many {
		ids = append(ids, muster.MachineID(fmt.Sprintf("m%05d", i)))
	}
	storetest.Free(b, db, ids...)
	list := func(b *testing.B, db *store.DB, who muster.Actor, f store.MachineFilter, want int) {
		err := db.View(context.Background(), who, func(tx *store.Tx) error {
			all, err := tx.Machines(f)
			if len(all) != want {
				b.Fatalf("%d machines, want %d", len(all), want)
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("all-again", func(b *testing.B) {
		list(b, db, muster.System(), store.MachineFilter{}, many)
		for b.Loop() {
			list(b, db, muster.System(), store.MachineFilter{}, many)
		}
	})
	b.Run("one-by-id", func(b *testing.B) {
		for b.Loop() {
			_ = db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
				_, err := tx.Machine(ids[77])
				return err
			})
		}
	})
	b.Run("none-of-a-phase", func(b *testing.B) {
		for b.Loop() {
			list(b, db, muster.System(), store.MachineFilter{Phases: []muster.MachinePhase{muster.MachineActive}}, 0)
		}
	})
	_ = db.Close()
	b.Run("all-first-time", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			db := open(b, dir, store.Options{})
			b.StartTimer()
			list(b, db, muster.System(), store.MachineFilter{}, many)
			b.StopTimer()
			_ = db.Close()
			b.StartTimer()
		}
	})
}

// BenchmarkClusters lists a user's ten clusters among ten thousand records.
func BenchmarkClusters(b *testing.B) {
	db := open(b, b.TempDir(), store.Options{})
	err := db.Update(context.Background(), muster.System(), func(tx *store.Tx) error {
		for i := range many {
			c := storetest.NewCluster(fmt.Sprintf("c%d", i), fmt.Sprintf("u%d", i%1000), fmt.Sprintf("p%d", i%1000))
			c.Phase = muster.ClusterQueued
			if err := tx.PutCluster(c, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	who := muster.Actor{Name: "u77", Projects: []string{"p77"}}
	b.Run("10-of-10000", func(b *testing.B) {
		for b.Loop() {
			err := db.View(context.Background(), who, func(tx *store.Tx) error {
				list, err := tx.Clusters(store.ClusterFilter{Living: true})
				if len(list) != 10 {
					b.Fatalf("%d clusters", len(list))
				}
				_, err2 := tx.NodesOf(list[0].ID, list[9].ID)
				if err == nil {
					err = err2
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by-name", func(b *testing.B) {
		for b.Loop() {
			_ = db.View(context.Background(), who, func(tx *store.Tx) error { _, err := tx.FindCluster("c77"); return err })
		}
	})
}

// BenchmarkOpen opens and closes a store that was closed well.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	db := open(b, dir, store.Options{})
	storetest.Free(b, db, "m1")
	_ = db.Close()
	for b.Loop() {
		db, err := reopen(dir)
		if err != nil {
			b.Fatal(err)
		}
		_ = db.Close()
	}
}
