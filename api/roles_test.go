package api_test

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// Who may change a cluster: its owner, managers of its project and administrators. Other
// members of the project see it and leave it alone; strangers do not see it.
func TestWhoMayChangeACluster(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 20, Build: true})
	root := s.Client("")
	people := map[string]*client.Client{
		"root": root, "owner": s.Client(s.User("alice", "aero")), "member": s.Client(s.User("bob", "aero")),
		"manager": s.Client(s.User("carol", "aero")), "stranger": s.Client(s.User("dave", "sky")),
	}
	if _, err := root.SetProjectMember(t.Context(), "aero", wire.ProjectMember{User: "carol", Role: "manager"}); err != nil {
		t.Fatal(err)
	}
	changes := map[string]func(*client.Client, string) error{
		"extend": func(k *client.Client, c string) error {
			_, err := k.Extend(t.Context(), c, wire.ExtendRequest{By: "1h"})
			return err
		},
		"scale": func(k *client.Client, c string) error {
			_, err := k.Scale(t.Context(), c, wire.ScaleRequest{Nodes: 2})
			return err
		},
		"share": func(k *client.Client, c string) error {
			_, err := k.Share(t.Context(), c, wire.ShareRequest{Add: []string{"bob"}})
			return err
		},
		"pause": func(k *client.Client, c string) error {
			_, err := k.Pause(t.Context(), c, wire.PauseRequest{DryRun: true})
			return err
		},
		"save": func(k *client.Client, c string) error {
			_, err := k.Save(t.Context(), c, wire.SaveRequest{Name: "solver", Replace: true})
			return err
		},
		"measure": func(k *client.Client, c string) error {
			_, err := k.Measure(t.Context(), c, wire.MeasureRequest{Stop: true})
			return err
		},
		"erase": func(k *client.Client, c string) error {
			_, err := k.EraseCluster(t.Context(), c)
			return err
		},
		"delete": func(k *client.Client, c string) error {
			_, err := k.DeleteCluster(t.Context(), c)
			return err
		},
	}
	want := map[string]muster.Code{"root": "", "owner": "", "manager": "", "member": muster.EForbidden, "stranger": muster.ENotFound}
	for role, k := range people {
		for name, change := range changes {
			created, err := people["owner"].CreateCluster(t.Context(), client.Create{Format: "yaml", Body: []byte("name: cfd\nnodes: 1\nhead: shared\nwalltime: 1h\nretain: 0")})
			if err != nil {
				t.Fatal(err)
			}
			err = change(k, string(created.ID))
			refused := muster.CodeOf(err)
			if w := want[role]; w != "" && refused != w || w == "" && (refused == muster.EForbidden || refused == muster.ENotFound && name != "measure") {
				t.Errorf("%s by %s: %v, want %q", name, role, err, w)
			}
			if want[role] == muster.EForbidden && muster.ReasonOf(err) != muster.ReasonNotYours {
				t.Errorf("%s by %s: %v", name, role, err)
			}
			if _, err := people["member"].Cluster(t.Context(), string(created.ID)); err != nil {
				t.Errorf("a member does not see it: %v", err)
			}
			if _, err := root.DeleteCluster(t.Context(), string(created.ID)); err != nil {
				t.Fatal(err)
			}
			waitGone(t, root, created.ID)
		}
	}
}

func waitGone(t *testing.T, k *client.Client, id muster.ClusterID) {
	t.Helper()
	err := k.Events(t.Context(), client.EventOptions{Cluster: string(id), Follow: true}, func(e wire.Event) error {
		if e.To == string(muster.ClusterDeleted) {
			return client.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
