package control_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// TestNothingNewOnAFullDisk: requests are refused while the disk is nearly
// full, deletion is not, and the health page says why.
func TestNothingNewOnAFullDisk(t *testing.T) {
	t.Parallel()
	full := false
	s := controltest.Start(t, controltest.Options{Machines: 3, Control: func(c *control.Config) {
		c.WritesAllowed = func() error {
			if full {
				return muster.Errorf(muster.EUnavailable, "the disk is full").WithHint("free some space")
			}
			return nil
		}
	}})
	created, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: a; nodes: 1; head: shared; users: [alice]"))
	if err != nil {
		t.Fatal(err)
	}
	full = true
	again := yaml("name: b; nodes: 1; head: shared; users: [alice]")
	_, err = s.Control.CreateCluster(t.Context(), root(), again)
	code(t, err, muster.EUnavailable)
	again.DryRun = true
	if _, err := s.Control.CreateCluster(t.Context(), root(), again); err != nil {
		t.Errorf("a dry run: %v", err)
	}
	alice := muster.Actor{Name: "alice", Projects: []string{"default"}}
	_, err = s.Control.CreateToken(t.Context(), alice, wire.TokenRequest{})
	code(t, err, muster.EUnavailable)
	if _, err := s.Control.CreateToken(t.Context(), root(), wire.TokenRequest{User: "alice"}); err != nil {
		t.Errorf("an administrator's token: %v", err)
	}
	// Through the API, which tells it with a status of its own.
	health, err := s.Client("").Health(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := false
	for _, c := range health.Checks {
		said = said || c.Name == "disk" && !c.OK && strings.Contains(c.Text, "full")
	}
	if health.Status != "degraded" || !said {
		t.Errorf("health %+v", health)
	}
	if _, err := s.Control.DeleteCluster(t.Context(), root(), string(created.ID)); err != nil {
		t.Errorf("deletion: %v", err)
	}
	full = false
	again.DryRun = false
	if _, err := s.Control.CreateCluster(t.Context(), root(), again); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
