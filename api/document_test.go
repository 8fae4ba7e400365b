package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// The three kinds of request go in as documents, each in each format; replies have the
// status and the cluster's ID.
func TestThreeKindsOfRequest(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 6, Build: true})
	alice := s.User("alice", "sea")
	made := ask(t, s, alice, http.MethodPost, "/v1/clusters", "application/xml", "<cluster><name>cfd</name><nodes>1</nodes><head>shared</head></cluster>")
	var c wire.Created
	if err := json.Unmarshal([]byte(made.body), &c); err != nil || made.status != http.StatusCreated || c.ID == "" {
		t.Fatalf("%d %s", made.status, made.body)
	}
	for range 200 { // it is built beside
		if a := ask(t, s, alice, http.MethodGet, "/v1/clusters/cfd", "", ""); strings.Contains(a.body, `"ready":`) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	id := string(c.ID)
	for _, x := range []struct {
		path, format, body string
		status             int
		says               string
	}{
		{"/v1/scale", "application/xml", "<scale><cluster>" + id + "</cluster><nodes>2</nodes></scale>", 202, `"id":"` + id},
		{"/v1/scale", "application/yaml", "cluster: " + id + "\nnodez: 2", 400, `"reason":"unknown-field"`},
		{"/v1/scale", "application/yaml", "nodes: 2", 400, "cluster"},
		{"/v1/scale", "application/json", `{"cluster":"nobodys","nodes":2}`, 404, "nobodys"},
		{"/v1/scale", "image/png", "x", 400, "application/yaml"},
		{"/v1/clusters/cfd/scale", "application/json", `{"cluster":"other","nodes":2}`, 400, `"reason":"contradiction"`},
		{"/v1/terminate", "application/json", `{"cluster":"cfd","erase":"perhaps"}`, 400, "erase"},
		{"/v1/terminate", "application/yaml", "cluster: " + id, 202, `"id":"` + id},
	} {
		a := ask(t, s, alice, http.MethodPost, x.path, x.format, x.body)
		if a.status != x.status || !strings.Contains(strings.ReplaceAll(a.body, ": ", ":"), strings.ReplaceAll(x.says, ": ", ":")) {
			t.Errorf("%s %s %q: %d %s", x.path, x.format, x.body, a.status, a.body)
		}
	}
	if a := ask(t, s, s.User("bob", "sky"), http.MethodPost, "/v1/terminate", "application/yaml", "cluster: "+id); a.status != http.StatusNotFound {
		t.Errorf("another project's cluster: %d %s", a.status, a.body)
	}
}
