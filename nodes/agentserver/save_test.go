package agentserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// A node is asked for its root with the answer to a report, and it is taken from that node
// alone, and only while somebody waits for it.
func TestSave(t *testing.T) {
	t.Parallel()
	got := ""
	b := joined(t, func(c *agentserver.Config) {
		c.Save = func(id muster.ClusterID, node string) *wire.SaveOrder {
			if id != cluster || node != "n01" {
				return nil
			}
			return &wire.SaveOrder{ID: "one"}
		}
		c.Saved = func(_ context.Context, id pki.NodeIdentity, save string, root io.Reader) error {
			if id.Node != "n01" || save != "one" {
				return muster.Errorf(muster.EConflict, "nobody waits")
			}
			text, err := io.ReadAll(root)
			got = string(text)
			return err
		}
	})
	var reply wire.ReportReply
	if code := b.send("POST", "/v1/report", address, wire.Report{Attempt: 1, State: "ready"}, &reply); code != http.StatusOK || reply.Save == nil || reply.Save.ID != "one" {
		t.Fatalf("%d: %+v", code, reply)
	}
	tree := strings.Repeat("a tar", 1<<16)
	if code := b.send("POST", "/v1/saves/one", address, tree, nil); code != http.StatusNoContent || got != tree {
		t.Errorf("%d: %d bytes", code, len(got))
	}
	if code := b.send("POST", "/v1/saves/other", address, tree, nil); code != http.StatusConflict {
		t.Errorf("another one: %d", code)
	}
	if code := b.send("POST", "/v1/saves/"+strings.Repeat("x", 500), address, "", nil); code != http.StatusConflict {
		t.Errorf("a long name: %d", code)
	}
}
