package api_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
	"github.com/muster-hpc/muster/wire"
)

// What HPL showed is for those who may see the cluster; for others the cluster is
// absent.
func TestHPLResults(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	alice, bob := s.User("alice", "bio"), s.User("bob", "chem")
	made := ask(t, s, alice, "POST", "/v1/clusters", "application/yaml", "name: cfd\nnodes: 2\nhead: shared\n")
	var created wire.Created
	if err := json.Unmarshal([]byte(made.body), &created); err != nil || made.status != http.StatusCreated {
		t.Fatal(made)
	}
	k := s.Client(alice)
	if list, err := k.HPLResults(t.Context(), "cfd", 0); err != nil || list.Fastest != nil || list.Results == nil || list.ID != created.ID {
		t.Errorf("%+v, %v", list, err)
	}
	fast, slow := storetest.NewHPL(created.ID, 6e10), storetest.NewHPL(created.ID, 5e10)
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		if err := tx.PutHPL(fast); err != nil {
			return err
		}
		return tx.PutHPL(slow)
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := k.HPLResults(t.Context(), string(created.ID), 1)
	if err != nil || len(list.Results) != 1 || list.Results[0].ID != slow.ID || list.Fastest == nil || list.Fastest.ID != fast.ID || list.Name != "cfd" {
		t.Errorf("%+v, %v", list, err)
	}
	if got := list.Results[0]; got.Rate.Median != slow.Rate.Median || len(got.Runs) != 3 || got.Runs[0].Problem == "" {
		t.Errorf("%+v", got)
	}
	if a := ask(t, s, alice, "GET", "/v1/clusters/cfd/hpl?limit=-1", "", ""); a.status != http.StatusUnprocessableEntity && a.status != http.StatusBadRequest {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	hidden := ask(t, s, bob, "GET", "/v1/clusters/"+string(created.ID)+"/hpl", "", "")
	absent := ask(t, s, bob, "GET", "/v1/clusters/c-23456789bc/hpl", "", "")
	if hidden.status != http.StatusNotFound || absent.status != http.StatusNotFound {
		t.Errorf("hidden %v, absent %v", hidden, absent)
	}
}
