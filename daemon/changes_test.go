package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// movedClock is the computer's clock, moved.
type movedClock struct {
	muster.SystemClock
	by atomic.Int64
}

func (c *movedClock) Now() time.Time { return c.SystemClock.Now().Add(time.Duration(c.by.Load())) }

// soon waits for something that happens by itself.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time: " + what)
		}
	}
}

// running is a server until the test ends, and a client of it.
func running(t *testing.T, c Config) (*Server, *client.Client) {
	t.Helper()
	c.State = t.TempDir()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(s.Run(ctx), s.Close()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	k, err := client.New(client.Config{Server: "unix:" + filepath.Join(s.cfg.State, "muster.sock")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	soon(t, "a server", func() bool { _, err := k.Server(t.Context()); return err == nil })
	return s, k
}

// A change of a user reaches the configuration of nodes; what is kept about a
// cluster goes when it goes, and its journals a week later.
func TestChangesReachNodes(t *testing.T) {
	t.Parallel()
	clock := &movedClock{}
	s, k := running(t, Config{Fake: 2, FakeDelay: time.Millisecond, Clock: clock})
	made, err := k.CreateCluster(t.Context(), client.Create{Body: []byte(`{"name":"cfd","nodes":2,"head":"shared"}`), DefaultUser: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	phase := func() muster.ClusterPhase {
		c, err := k.Cluster(t.Context(), string(made.ID))
		if err != nil {
			t.Fatal(err)
		}
		return c.Status
	}
	soon(t, "ready", func() bool { return phase() == muster.ClusterReady })

	config := func(node string) wire.NodeConfig {
		c, err := s.configs.Node(t.Context(), made.ID, node)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, other := config("n01"), config("n02")
	if first.Node != "n01" || !first.Head || other.Node != "n02" || other.Head || first.Generation != other.Generation {
		t.Errorf("%+v\n%+v", first, other)
	}
	if first.SSH.HostKey == other.SSH.HostKey || first.SSH.HostCertificate == other.SSH.HostCertificate {
		t.Error("two nodes have one key")
	}
	if _, err := s.configs.Node(t.Context(), made.ID, "n03"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("a node that is not there: %v", err)
	}
	_, pub, err := pki.NewHostKey()
	if err != nil {
		t.Fatal(err)
	}
	key := string(ssh.MarshalAuthorizedKey(pub))
	if _, err := k.AddKey(t.Context(), "alice", wire.KeyRequest{Key: string(key[:len(key)-1])}); err != nil {
		t.Fatal(err)
	}
	soon(t, "the key", func() bool { c := config("n01"); return len(c.Users) == 1 && len(c.Users[0].Keys) == 1 })
	if c := config("n02"); c.Generation != first.Generation+1 || len(c.Users[0].Keys) != 1 {
		t.Errorf("generation %d after %d, users %+v", c.Generation, first.Generation, c.Users)
	}
	// A key with an end is given to nodes with it: their sshd knows when it is over.
	if _, err := k.AddKey(t.Context(), "alice", wire.KeyRequest{Key: string(key[:len(key)-1]), TTL: "1h"}); err != nil {
		t.Fatal(err)
	}
	soon(t, "the end of the key", func() bool { c := config("n01"); return strings.HasPrefix(c.Users[0].Keys[0], `expiry-time="2`) })
	if _, _, options, _, err := ssh.ParseAuthorizedKey([]byte(config("n01").Users[0].Keys[0])); err != nil || len(options) != 1 {
		t.Errorf("options %v, %v", options, err)
	}

	list, err := k.Machines(t.Context(), true)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := k.DeleteCluster(t.Context(), string(made.ID)); err != nil {
		t.Fatal(err)
	}
	soon(t, "deleted", func() bool { return phase() == muster.ClusterDeleted })
	soon(t, "agents forgotten", func() bool {
		_, a := s.agents.Last(list[0].ID)
		_, b := s.agents.Last(list[1].ID)
		return !a && !b
	})
	if _, err := s.configs.Node(t.Context(), made.ID, "n01"); err == nil {
		t.Error("a cluster that is gone is configured")
	}
	if !s.keepsJournal(t.Context(), made.ID) || s.keepsJournal(t.Context(), "c-never") {
		t.Error("journals are kept for a week after the end, of clusters that were")
	}
	clock.by.Store(int64(journalsKept + time.Minute))
	if s.keepsJournal(t.Context(), made.ID) {
		t.Error("journals are kept for ever")
	}
}
