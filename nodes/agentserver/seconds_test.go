package agentserver_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

func TestUsageOfSeconds(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []wire.UsageSeconds
	wanted := true
	b := joined(t, func(c *agentserver.Config) {
		c.WantSeconds = func(id muster.ClusterID, node string) bool {
			mu.Lock()
			defer mu.Unlock()
			return wanted && id == cluster && node == "n01"
		}
		c.Seconds = func(_ time.Time, id pki.NodeIdentity, u wire.UsageSeconds) {
			mu.Lock()
			defer mu.Unlock()
			if id.Node == "n01" && id.Machine == machine {
				told = append(told, u)
			}
		}
	})
	send := func(u *wire.UsageSeconds) wire.ReportReply {
		t.Helper()
		var reply wire.ReportReply
		q := wire.Report{Attempt: 1, State: "ready", Facts: &muster.Facts{Cores: 2, Threads: 2}, Seconds: u}
		if code := b.send("POST", "/v1/report", address, q, &reply); code != http.StatusOK {
			t.Fatal(code)
		}
		return reply
	}
	if !send(nil).Seconds {
		t.Error("it is not wanted")
	}
	good := wire.UsageSeconds{Ago: 0.5, User: []float64{1, 2}, System: []float64{0.5, 0}, Wait: []float64{0, 0}}
	send(&good)
	short, busy, old := good, good, good
	short.Wait = good.Wait[:1]
	busy.User = []float64{1, 9} // on two cores
	old.Ago = 1e9
	for _, bad := range []wire.UsageSeconds{short, busy, old, {}, {User: make([]float64, 1000), System: make([]float64, 1000), Wait: make([]float64, 1000)}} {
		send(&bad)
	}
	mu.Lock()
	if len(told) != 1 || told[0].User[1] != 2 || told[0].Ago != 0.5 {
		t.Errorf("%+v", told)
	}
	wanted = false
	mu.Unlock()
	if send(nil).Seconds {
		t.Error("it is wanted for ever")
	}
	if q, err := agentserver.DecodeReport(strings.NewReader(`{"attempt":1,"state":"ready","seconds":{"ago_seconds":1,"user":[-1],"system":[0],"wait":[0]}}`)); err != nil || q.Seconds != nil {
		t.Errorf("%+v, %v", q.Seconds, err)
	}
}
