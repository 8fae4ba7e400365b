package agentserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

var _ power.Agent = (*agentserver.Server)(nil)

func (b *bench) report(attempt int64) (reply wire.ReportReply, code int) {
	b.t.Helper()
	code = b.send("POST", "/v1/report", address, wire.Report{Attempt: attempt, State: "ready"}, &reply)
	return reply, code
}

// refused is what an agent hears whose attempt is over.
func (b *bench) refused(method, path string, body any) (r wire.Refusal) {
	b.t.Helper()
	in, _ := json.Marshal(body)
	w := httptest.NewRecorder()
	b.srv.ServeHTTP(w, httptest.NewRequestWithContext(b.t.Context(), method, path, bytes.NewReader(in)))
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || w.Code != http.StatusGone {
		b.t.Fatalf("%d: %s, %v", w.Code, w.Body, err)
	}
	return r
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An agent hears that its machine is to go off: with its next answer, at once when it
// listens, and also when its node is gone; the next attempt hears nothing of it.
func TestSwitchOff(t *testing.T) {
	t.Parallel()
	b := joined(t, func(c *agentserver.Config) { c.WatchTime = time.Minute })
	if r, code := b.report(1); code != http.StatusOK || r.PowerOff {
		t.Fatalf("%d: %+v", code, r)
	}
	ok(t, b.srv.SwitchOff(t.Context(), machine))
	var word wire.NodeConfig
	if code := b.send("GET", "/v1/watch?speak=1&generation=1", address, nil, &word); code != http.StatusOK || word.Generation != 0 {
		t.Errorf("who listens is not told to speak: %d, %+v", code, word)
	}
	if r, _ := b.report(1); !r.PowerOff {
		t.Error("the agent is not told")
	}
	if r, _ := b.report(1); !r.PowerOff {
		t.Error("the agent is told only once")
	}
	b.update(func(tx *store.Tx) error { // its node leaves
		n, err := tx.Node(cluster, "n01")
		if err != nil {
			return err
		}
		n.Phase = muster.NodeDraining
		if err := tx.PutNode(n, ""); err != nil {
			return err
		}
		return nil
	})
	if r, _ := b.report(1); !r.PowerOff {
		t.Error("the agent of a node that drains is not told")
	}
	b.identity.Store(&pki.NodeIdentity{Machine: machine, Cluster: "c-gone", Node: "n01", Attempt: 1})
	if r := b.refused("POST", "/v1/report", wire.Report{Attempt: 1}); !r.PowerOff || r.Message == "" {
		t.Errorf("the agent of a node that is gone: %+v", r)
	}
	if r := b.refused("GET", "/v1/watch?speak=1&generation=1", nil); !r.PowerOff {
		t.Errorf("the agent of a node that is gone listens: %+v", r)
	}
	b.identity.Store(&pki.NodeIdentity{Machine: "m2", Cluster: "c-gone", Node: "n01", Attempt: 1})
	if r := b.refused("POST", "/v1/report", wire.Report{Attempt: 1}); r.PowerOff {
		t.Error("another machine is told")
	}
	if code := muster.CodeOf(b.srv.SwitchOff(t.Context(), "nobody")); code != muster.ENotFound {
		t.Errorf("a machine that there is not: %s", code)
	}
}

func TestANewAttemptIsNotSwitchedOff(t *testing.T) {
	t.Parallel()
	b := joined(t)
	ok(t, b.srv.SwitchOff(t.Context(), machine))
	b.update(func(tx *store.Tx) error { // the machine is lost, repaired, and gets the node again
		for _, p := range []muster.NodePhase{muster.NodeValidating, muster.NodeReady} {
			n, err := tx.Node(cluster, "n01")
			if err != nil {
				return err
			}
			n.Phase = p
			if err := tx.PutNode(n, ""); err != nil {
				return err
			}
		}
		return nil
	})
	token := b.boot(2, time.Hour)
	ok(t, b.srv.SwitchOff(t.Context(), machine)) // said of the boot that is under way
	if _, code := b.join(token, newCSR(t), 2, address); code != http.StatusOK {
		t.Fatal(code)
	}
	b.identity.Store(&pki.NodeIdentity{Machine: machine, Cluster: cluster, Node: "n01", Attempt: 2})
	if r, code := b.report(2); code != http.StatusOK || !r.PowerOff {
		t.Errorf("an order for this attempt was forgotten: %d, %+v", code, r)
	}
	b.update(func(tx *store.Tx) error {
		for _, p := range []muster.NodePhase{muster.NodeValidating, muster.NodeReady} {
			n, err := tx.Node(cluster, "n01")
			if err != nil {
				return err
			}
			n.Phase = p
			if err := tx.PutNode(n, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if _, code := b.join(b.boot(3, time.Hour), newCSR(t), 3, address); code != http.StatusOK {
		t.Fatal(code)
	}
	b.identity.Store(&pki.NodeIdentity{Machine: machine, Cluster: cluster, Node: "n01", Attempt: 3})
	if r, code := b.report(3); code != http.StatusOK || r.PowerOff {
		t.Errorf("the next attempt is switched off: %d, %+v", code, r)
	}
}

// Who asks learns whether the agent was told, and when it was heard, also by a word
// that was refused.
func TestOffAndHeard(t *testing.T) {
	t.Parallel()
	b := joined(t, func(c *agentserver.Config) {
		c.IntervalReady, c.IntervalBooting = 50*time.Millisecond, 50*time.Millisecond
	})
	if at := b.srv.Heard("m2"); !at.IsZero() {
		t.Errorf("heard at %v", at)
	}
	told := make(chan error, 1)
	b.report(1)
	go func() { told <- b.srv.Off(context.WithoutCancel(t.Context()), machine) }()
	for end := time.Now().Add(2 * time.Minute); ; {
		if r, _ := b.report(1); r.PowerOff {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the agent is not told")
		}
	}
	ok(t, <-told)
	time.Sleep(200 * time.Millisecond)
	if err := b.srv.Off(t.Context(), machine); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("who is silent is asked: %v", err)
	}
	if r, _ := b.report(1); r.PowerOff {
		t.Error("an order that came to nothing is told to who comes later")
	}
	before := b.srv.Heard(machine)
	b.identity.Store(&pki.NodeIdentity{Machine: machine, Cluster: cluster, Node: "n01", Attempt: 7})
	b.refused("POST", "/v1/report", wire.Report{Attempt: 7})
	if after := b.srv.Heard(machine); !after.After(before) {
		t.Error("a word that was refused was not heard")
	}
}
