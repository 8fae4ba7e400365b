package control_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// A name that the image has for itself is refused where it is asked for: in a request,
// for a cluster that runs, and for a new user.
func TestNamesOfTheImage(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	for _, name := range []string{"elastic", "alice"} { // users that were there before the image
		s.User(name, "bio")
	}
	s.Images.Change("hpc", func(i *muster.Image) { i.Names = []string{"elastic", "root"} })
	call := yaml("name: cfd; nodes: 1; users: [alice, elastic]; image: hpc")
	call.DryRun = true
	_, err := s.Control.CreateCluster(t.Context(), root(), call)
	if e := code(t, err, muster.EInvalid); !strings.Contains(e.Error()+fmtProblems(e), "elastic") || !strings.Contains(fmtProblems(e), "users[1]") || !strings.Contains(fmtProblems(e), "image hpc") {
		t.Errorf("request: %v %s", err, fmtProblems(e))
	}
	if _, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: cfd; nodes: 1; users: [alice]; image: hpc")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Control.Share(t.Context(), root(), "cfd", wire.ShareRequest{Add: []string{"elastic"}}); muster.CodeOf(err) != muster.EInvalid || !strings.Contains(err.Error(), "image hpc") {
		t.Errorf("share: %v", err)
	}
	s.Images.Change("raw", func(i *muster.Image) { i.Names = []string{"kibana"} })
	if _, err := s.Control.PutUser(t.Context(), root(), wire.UserRequest{Name: "kibana"}); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("user: %v", err)
	}
	// Whoever has the name can still be changed.
	if _, err := s.Control.PutUser(t.Context(), root(), wire.UserRequest{Name: "elastic", FullName: "E. Lastic"}); err != nil {
		t.Errorf("a user that is there: %v", err)
	}
}

func fmtProblems(e *muster.Error) string {
	var out []string
	for _, p := range e.Problems {
		out = append(out, p.Field+" "+p.Message)
	}
	return strings.Join(out, "; ")
}
