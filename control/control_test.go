package control_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

func root() muster.Actor { return muster.Actor{Name: "root", Admin: true} }

func yaml(text string) wire.CreateCall {
	return wire.CreateCall{Body: []byte(strings.ReplaceAll(text, "; ", "\n")), Format: "yaml"}
}

func code(t *testing.T, err error, want muster.Code) *muster.Error {
	t.Helper()
	if muster.CodeOf(err) != want {
		t.Fatalf("error %v has code %q, want %q", err, muster.CodeOf(err), want)
	}
	var e *muster.Error
	_ = errors.As(err, &e)
	if e != nil && e.Hint == "" && len(e.Problems) == 0 {
		t.Errorf("%q does not say what to do", e.Message)
	}
	return e
}

func TestCreateAssignsMachinesAndSecrets(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 5})
	created, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: cfd; nodes: 3; users: [alice]"))
	if err != nil {
		t.Fatal(err)
	}
	if created.ID == "" || created.Status != "building" || created.Cluster == nil || len(created.Cluster.Nodes) != 4 {
		t.Fatalf("created %+v", created)
	}
	if len(created.Answer.Notices) == 0 || !strings.Contains(created.Answer.Notices[0], "alice") {
		t.Errorf("no word of the new user: %q", created.Answer.Notices)
	}
	err = s.Store.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		for _, name := range []string{muster.SecretHostCA, muster.SecretUserCA, muster.SecretMungeKey, muster.SecretHostKey("head"), muster.SecretHostKey("n03")} {
			if v, err := tx.Secret(created.ID, name); err != nil || len(v) == 0 {
				t.Errorf("secret %s: %d bytes, %v", name, len(v), err)
			}
		}
		if _, err := tx.Secret(created.ID, muster.SecretRootKey); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("a root key where users are not root: %v", err)
		}
		c, err := tx.Cluster(created.ID)
		if err != nil {
			return err
		}
		if c.Owner != "alice" || c.Project != "default" || c.Image == "" || !c.Subnet.IsValid() {
			t.Errorf("cluster %+v", c)
		}
		held, err := tx.Machines(store.MachineFilter{Cluster: created.ID})
		if len(held) != 4 {
			t.Errorf("%d machines are held, want 4", len(held))
		}
		u, err2 := tx.User("alice")
		if err2 != nil || u.UID < 20000 {
			t.Errorf("user %+v, %v", u, err2)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, n := range created.Cluster.Nodes {
		if n.Address == "" || seen[n.Address] {
			t.Errorf("node %s has address %q", n.Name, n.Address)
		}
		seen[n.Address] = true
	}
}

func TestCreateTellsEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	s.User("alice", "bio")
	alice := muster.Actor{Name: "alice", Projects: []string{"bio"}}
	_, err := s.Control.CreateCluster(t.Context(), alice, yaml("name: cfd; nodes: 1; image: hpcc; project: chem; egress: nat; users: [alise]; packages: ['a b']; head: shred"))
	e := code(t, err, muster.EInvalid)
	for _, field := range []string{"image", "project", "egress", "users[0]", "packages[0]", "head"} {
		found := false
		for _, p := range e.Problems {
			if p.Field == field {
				found = true
				if p.Place == "" {
					t.Errorf("%s has no place: %+v", field, p)
				}
			}
		}
		if !found {
			t.Errorf("nothing is said of %s: %v", field, err)
		}
	}
	if !strings.Contains(err.Error(), " alice") {
		t.Errorf("no hint for alise: %v", err)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4})
	call := yaml("name: cfd; nodes: 1; head: shared; users: [alice]")
	call.Key = "k1"
	one, err := s.Control.CreateCluster(t.Context(), root(), call)
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.Control.CreateCluster(t.Context(), root(), call)
	if err != nil || one.ID != two.ID {
		t.Fatalf("%s, then %s: %v", one.ID, two.ID, err)
	}
	other := yaml("name: other; nodes: 1; head: shared; users: [alice]")
	other.Key = "k1"
	_, err = s.Control.CreateCluster(t.Context(), root(), other)
	if e := code(t, err, muster.EConflict); e.Reason != muster.ReasonKeyTaken {
		t.Errorf("another request with the key of the first: %v", err)
	}
	call.Key = "k2"
	_, err = s.Control.CreateCluster(t.Context(), root(), call)
	if e := code(t, err, muster.EConflict); e.Reason != muster.ReasonNameTaken || !strings.Contains(e.Message, string(one.ID)) {
		t.Errorf("the name is taken, by whom: %v", err)
	}
}

func TestManyAtOnceNeverShareAMachine(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 10})
	var wg sync.WaitGroup
	var mu sync.Mutex
	status := map[string]int{}
	for i := range 8 {
		wg.Go(func() {
			c, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: c"+string(rune('a'+i))+"; nodes: 2; head: shared; users: [alice]"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			status[c.Status]++
		})
	}
	wg.Wait()
	if status["building"] != 5 || status["queued"] != 3 {
		t.Fatalf("%v, want 5 building and 3 queued", status)
	}
}

func TestQueueIsServedInOrder(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	create := func(name, n string) wire.Created {
		t.Helper()
		c, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: "+name+"; nodes: "+n+"; head: shared; users: [alice]"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := create("first", "4")
	second := create("second", "3")
	third := create("third", "4")
	if second.Status != "queued" || third.Cluster.Position != 2 || third.Answer.Position != 2 {
		t.Fatalf("second %s, third at %d", second.Status, third.Cluster.Position)
	}
	refused := yaml("name: now; nodes: 1; head: shared; queue: false; users: [alice]")
	_, err := s.Control.CreateCluster(t.Context(), root(), refused)
	code(t, err, muster.ENoCapacity)
	k := s.Client("")
	if _, err := s.Control.DeleteCluster(t.Context(), root(), string(first.ID)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, k, second.ID, muster.ClusterReady)
	if c, err := s.Control.Cluster(t.Context(), root(), string(third.ID)); err != nil || c.Status != muster.ClusterQueued || c.Position != 1 {
		t.Fatalf("third is %s at %d: %v", c.Status, c.Position, err)
	}
	if _, err := s.Control.DeleteCluster(t.Context(), root(), "second"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, k, third.ID, muster.ClusterReady)
}

func TestNeverHasReasons(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4})
	created, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: huge; nodes: 1; machine: {cores: '>=1000'}; users: [alice]"))
	code(t, err, muster.ENever)
	if created.ID != "" || len(created.Answer.Rejections) == 0 || created.Answer.Rejections[0].Count != 4 {
		t.Errorf("answer %+v", created.Answer)
	}
	list, err := s.Control.Clusters(t.Context(), root(), wire.ClusterQuery{All: true})
	if err != nil || len(list.Clusters) != 0 {
		t.Errorf("something was recorded: %v, %v", list, err)
	}
	if users, _ := s.Control.Users(t.Context(), root(), wire.Page{}); len(users.Users) != 0 {
		t.Errorf("a user was made for a refused request: %v", users)
	}
}
