package agentserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// An order reaches its node with the answer to a report, and what became of it is
// taken from that node alone.
func TestLaunch(t *testing.T) {
	t.Parallel()
	var got wire.LaunchEnd
	var printed string
	b := joined(t, func(c *agentserver.Config) {
		c.Launch = func(id muster.ClusterID, node string) *wire.LaunchOrder {
			if id != cluster || node != "n01" {
				return nil
			}
			return &wire.LaunchOrder{ID: "first", Program: "muster-probe"}
		}
		c.Launched = func(_ context.Context, id pki.NodeIdentity, end wire.LaunchEnd, out io.Reader) (*wire.LaunchOrder, error) {
			if id.Node != "n01" || end.ID != "first" {
				return nil, muster.Errorf(muster.EConflict, "nobody waits")
			}
			text, err := io.ReadAll(out)
			got, printed = end, string(text)
			return &wire.LaunchOrder{ID: "second"}, err
		}
	})
	var reply wire.ReportReply
	if code := b.send("POST", "/v1/report", address, wire.Report{Attempt: 1, State: "ready", Probe: true}, &reply); code != http.StatusOK || reply.Launch == nil || reply.Launch.ID != "first" {
		t.Fatalf("%d: %+v", code, reply)
	}
	if last, _ := b.srv.Last(machine); !last.Report.Probe {
		t.Error("that it can measure was not heard")
	}
	var next wire.LaunchReply
	if code := b.send("POST", "/v1/launches", address, `{"id":"first","exit":0,"error":"a\u001b[2Jb"}`+"\nline\nanother\n", &next); code != http.StatusOK || next.Next == nil || next.Next.ID != "second" {
		t.Errorf("%d: %+v", code, next)
	}
	if printed != "line\nanother\n" || got.Error != "a�[2Jb" {
		t.Errorf("%q, %+v", printed, got)
	}
	for body, want := range map[string]int{
		`{"id":"other"}` + "\n": http.StatusConflict, "": http.StatusBadRequest, "{\n": http.StatusBadRequest, "{}\n": http.StatusBadRequest,
		`{"id":"first"}`: http.StatusBadRequest, strings.Repeat("x", 1<<17): http.StatusBadRequest,
	} {
		if code := b.send("POST", "/v1/launches", address, body, nil); code != want {
			t.Errorf("%.20q: %d", body, code)
		}
	}
	b.identity.Store(&pki.NodeIdentity{Machine: machine, Cluster: cluster, Node: "n01", Attempt: 2})
	if code := b.send("POST", "/v1/launches", address, `{"id":"first"}`+"\n", nil); code != http.StatusGone {
		t.Errorf("of another attempt: %d", code)
	}
}

// An agent that waits for a newer configuration hears that it should report, also
// if that was wished for before it waited.
func TestSpeak(t *testing.T) {
	t.Parallel()
	b := joined(t, func(c *agentserver.Config) { c.WatchTime = time.Minute })
	for range 2 {
		b.srv.Speak(cluster, "n01")
		cfg := wire.NodeConfig{Generation: 7}
		if code := b.send("GET", "/v1/watch?speak=1&generation=1", address, nil, &cfg); code != http.StatusOK || cfg.Cluster != "" {
			t.Errorf("%d: %+v", code, cfg)
		}
	}
}
