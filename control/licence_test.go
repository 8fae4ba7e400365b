package control_test

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Administrators alone allow licence servers; a port leads to one; what is given is taken back.
func TestLicenceProject(t *testing.T) {
	t.Parallel()
	b := newBooked(t, 1)
	b.Control.LicencePortsTaken = []int{7700}
	set := func(who muster.Actor, server string, revoke bool) error {
		_, err := b.Control.LicenceProject(t.Context(), who, "default", wire.ProjectLicence{Server: server, Revoke: revoke})
		return err
	}
	if err := set(member("eve", "default"), "lic:27000", false); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("a member: %v", err)
	}
	for _, c := range []struct {
		server string
		revoke bool
		want   muster.Reason
	}{
		{"lic:22", false, muster.ReasonBadValue},
		{"lic:7700", false, muster.ReasonBadValue}, // that of agents
		{"lic:27000", true, muster.ReasonNoSuchObject},
		{"lic:27000", false, ""},
		{"lic:27000", false, ""}, // again is nothing new
		{"other:27000", false, muster.ReasonContradiction},
		{"other:27001", false, ""},
		{"lic:27000", true, ""},
	} {
		if err := set(root(), c.server, c.revoke); c.want == "" && err != nil || c.want != "" && muster.ReasonOf(err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	var list []muster.LicenceServer
	if err := b.Control.Store.View(t.Context(), muster.System(), func(tx *store.Tx) (err error) {
		list, err = control.LicencesOf(tx, "default")
		return err
	}); err != nil || len(list) != 1 || list[0].String() != "other:27001" {
		t.Errorf("%v, %v", list, err)
	}
}
