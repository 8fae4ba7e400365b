package agent_test

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent"
	"github.com/muster-hpc/muster/wire"
)

// A machine that went on from its saved memory is another boot of another machine, by its host's word: its agent joins
// anew, with a credential that had expired as with any, and the node is ready all the while. An agent that starts
// later is that boot's as well.
func TestHostSaysAnotherBoot(t *testing.T) {
	t.Parallel()
	s, n := newServer(t), &node{}
	s.life = 2 * time.Second // by the time that it goes on, its credential has ended
	dir := agent.Dir(t.TempDir())
	port, host := io.Pipe()
	defer host.Close()
	var mu sync.Mutex
	var links []wire.BootLink
	var kept wire.Bootstrap
	stop := start(t, s, n, func(c *agent.Config) {
		c.Store, c.Host = dir, port
		c.SetClock = func(time.Time) error { return nil }
		c.SetLinks = func(l []wire.BootLink) error {
			mu.Lock()
			defer mu.Unlock()
			links = l
			return nil
		}
		c.Became = func(b wire.Bootstrap) error {
			mu.Lock()
			defer mu.Unlock()
			kept = b
			return nil
		}
	})
	s.until("ready", ready)
	s.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusServiceUnavailable, "the server is away")
	})
	time.Sleep(2100 * time.Millisecond)
	s.mu.Lock()
	s.life, s.bound, s.token, s.hook = time.Hour, nil, "mjt_second", nil
	s.mu.Unlock()
	s.forget()
	tell := func(token string) {
		b, err := json.Marshal(wire.HostLine{Clock: time.Now(), Join: &wire.HostJoin{Machine: "m2", Attempt: 7, Token: token,
			Links: []wire.BootLink{{Name: "mgmt0", MAC: "52:00:00:00:00:02"}}}})
		check(t, err)
		_, err = host.Write(append(b, '\n'))
		check(t, err)
	}
	tell("mjt_of_a_server_that_was_killed")
	tell("mjt_second")
	s.until("the other boot", func(r wire.Report) bool { return ready(r) && r.Attempt == 7 })
	s.mu.Lock()
	for _, r := range s.reports {
		if r.Attempt == 7 && r.State != agent.StateReady {
			t.Errorf("a node that is ready said %s", r.State)
		}
	}
	s.mu.Unlock()
	mu.Lock()
	if len(links) != 1 || links[0].Name != "mgmt0" || kept.Machine != "m2" || kept.Attempt != 7 || kept.Token != "mjt_second" {
		t.Errorf("%+v, %+v", links, kept)
	}
	mu.Unlock()
	stop()
	s.forget()
	start(t, s, n, func(c *agent.Config) {
		c.Store = dir
		c.Bootstrap.Machine, c.Bootstrap.Attempt, c.Bootstrap.Token = muster.MachineID("m2"), 7, ""
	})
	s.until("it starts anew as that", func(r wire.Report) bool { return ready(r) && r.Attempt == 7 })
	if joins, _, _ := s.count(); joins != 2 {
		t.Errorf("%d joins", joins)
	}
}
