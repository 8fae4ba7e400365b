package control_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// Names and numbers as directories give them: what nodes can have is taken, and what they
// cannot is refused with the name that fits.
func TestPeopleOfDirectories(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	u, err := s.Control.PutUser(t.Context(), root(), wire.UserRequest{Name: "jane.doe", UID: 1234601104})
	if err != nil || u.UID != 1234601104 {
		t.Fatalf("%+v, %v", u, err)
	}
	for name, want := range map[string]string{`EXAMPLE\john`: "use john", "john@example.org": "use john", "Jane.Roe": "use jane.roe"} {
		_, err := s.Control.PutUser(t.Context(), root(), wire.UserRequest{Name: name})
		if e := code(t, err, muster.EInvalid); e.Reason != muster.ReasonBadName || e.Hint != want {
			t.Errorf("%s: %+v", name, e)
		}
	}
	for _, uid := range []int{999, 61184, 65534, 65535, 1<<31 - 1} {
		_, err := s.Control.PutUser(t.Context(), root(), wire.UserRequest{Name: "x", UID: uid})
		if e := code(t, err, muster.EInvalid); e.Reason != muster.ReasonOutOfRange {
			t.Errorf("%d: %+v", uid, e)
		}
	}
	// Whoever called sudo owns the cluster, or is asked who they are: never somebody else.
	call := yaml("name: a; nodes: 1; head: shared")
	call.DefaultUser = "jane.doe"
	made, err := s.Control.CreateCluster(t.Context(), root(), call)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.Control.Cluster(t.Context(), root(), string(made.ID)); err != nil || c.Owner != "jane.doe" {
		t.Errorf("%+v, %v", c, err)
	}
	for range 2 {
		call = yaml("name: b; nodes: 1; head: shared")
		call.DefaultUser = `EXAMPLE\john`
		_, err = s.Control.CreateCluster(t.Context(), root(), call)
		e := code(t, err, muster.EInvalid)
		if len(e.Problems) != 1 || e.Problems[0].Field != "users" || !strings.Contains(e.Problems[0].Hint, "use john") {
			t.Errorf("%+v", e)
		}
	}
}

// A number that does not exist on machines is told before a cluster gets them.
func TestHighUIDs(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2, Control: func(c *control.Config) {
		for name, can := range c.Providers {
			can.LargestUID = 65535
			c.Providers[name] = can
		}
	}})
	for name, uid := range map[string]int{"jane": 1234601104, "john": 20000} {
		if _, err := s.Control.PutUser(t.Context(), root(), wire.UserRequest{Name: name, UID: uid, Projects: []string{"bio"}}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: a; nodes: 1; head: shared; users: [john, jane]"))
	if e := code(t, err, muster.ENever); !strings.Contains(e.Error(), "1234601104") || !strings.Contains(e.Error(), "jane") {
		t.Errorf("%+v", e)
	}
	made, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: b; nodes: 1; head: shared; users: [john]"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Control.Share(t.Context(), root(), string(made.ID), wire.ShareRequest{Add: []string{"jane"}})
	if e := code(t, err, muster.EInvalid); e.Reason != muster.ReasonOutOfRange || !strings.Contains(e.Message, "1234601104") {
		t.Errorf("%+v", e)
	}
}

// Whoever shares a cluster cannot be removed, and who owns one neither: each with its own cure.
func TestRemoveUserOfAClusterOfOthers(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	s.User("alice", "default")
	s.User("bob", "default")
	id := ready(t, s, "cfd", 1, "")
	if _, err := s.Control.Share(t.Context(), root(), string(id), wire.ShareRequest{Add: []string{"bob"}}); err != nil {
		t.Fatal(err)
	}
	c, err := s.Control.Cluster(t.Context(), root(), string(id))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alice", "bob"} {
		e := code(t, s.Control.RemoveUser(t.Context(), root(), name), muster.EConflict)
		if shared := c.Owner != name; e.Reason != muster.ReasonUserInUse || strings.Contains(e.Hint, "muster unshare") != shared {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
