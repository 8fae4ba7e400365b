package store_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/muster-hpc/muster/internal/raced"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

func open(t testing.TB, dir string, o store.Options) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), filepath.Join(dir, "muster.db"), o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestSuite(t *testing.T) { storetest.Suite(t, open) }

// TestSuiteUncached is the suite without what is kept in memory.
func TestSuiteUncached(t *testing.T) {
	once(t)
	storetest.Suite(t, func(t testing.TB, dir string, o store.Options) *store.DB {
		o.NoCache = true
		return open(t, dir, o)
	})
}

// TestSuiteAgain is the suite with every function run twice.
func TestSuiteAgain(t *testing.T) {
	once(t)
	storetest.Suite(t, func(t testing.TB, dir string, o store.Options) *store.DB {
		o.Again = true
		return open(t, dir, o)
	})
}

// once skips a variant of the suite under the race detector, which sees the suite itself.
func once(t *testing.T) {
	t.Helper()
	if raced.Enabled {
		t.Skip("the race detector watches TestSuite")
	}
}
