package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

// Whoever wants to verify a certificate needs no account here.
func TestSigningKeysAreForEverybody(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Control: func(c *control.Config) {
		c.SigningKeys = func() []muster.SigningKey { return []muster.SigningKey{{ID: "sha256:ab", Key: "AA=="}} }
	}})
	a := ask(t, s, "mst_bad", "GET", "/v1/certificates/keys", "", "")
	if a.status != http.StatusOK || !strings.Contains(a.body, `"sha256:ab"`) || strings.Contains(a.body, "until") {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	if a := ask(t, s, "mst_bad", "GET", "/v1/server", "", ""); a.status != http.StatusUnauthorized {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
}

// A certificate leaves as it was signed; lists and answers made of several are
// plain replies.
func TestCertificateRoutes(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{})
	c := storetest.NewCluster("cfd", "alice", "sea")
	cert := storetest.Signed(t, storetest.NewCertificate(c.ID, "n01"))
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		if err := tx.PutCluster(c, ""); err != nil {
			return err
		}
		return tx.PutCertificate(cert)
	})
	if err != nil {
		t.Fatal(err)
	}
	want, err := cert.Envelope()
	if err != nil {
		t.Fatal(err)
	}
	id := string(cert.Certificate.ID)
	if a := ask(t, s, "", "GET", "/v1/certificates/"+id, "", ""); a.status != http.StatusOK || a.body != string(want) {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	got, err := s.Client("").Certificate(t.Context(), cert.Certificate.ID)
	if err != nil || string(got) != string(want) {
		t.Errorf("%s, %v", got, err)
	}
	for path, want := range map[string]string{
		"/v1/certificates": `"cluster_name":"cfd"`,
		"/v1/clusters/cfd/certificates?kind=node&limit=1":  `"id":"` + id,
		"/v1/clusters/cfd/certificates?kind=cluster":       `"certificates":[]`,
		"/v1/certificates?cluster=cfd&node=n01":            `"id":"` + id,
		"/v1/certificates?machine=m-n01&class=epyc":        `"id":"` + id,
		"/v1/certificates?present=true&since=100000d":      `"id":"` + id,
		"/v1/certificates?since=1s":                        `"certificates":[]`,
		"/v1/certificates/history?of=class:epyc":           `"kind":"class"`,
		"/v1/certificates/history?of=m-n01&since=1s":       `not_found`,
		"/v1/certificates/history":                         `invalid`,
		"/v1/certificates/history?of=cfd&since=x":          `invalid`,
		"/v1/certificates?since=x":                         `invalid`,
		"/v1/certificates?kind=x":                          `invalid`,
		"/v1/certificates/compare?of=cfd":                  `"reason":"required"`,
		"/v1/certificates/compare?of=cfd&of=" + id:         `"reason":"not-one-thing"`,
		"/v1/certificates/compare?of=a&of=b&across=colour": `colour`,
		"/v1/certificates/history?of=" + id:                `"reason":"bad-value"`,
		"/v1/certificates/pc-2222222222":                   `not_found`,
	} {
		if a := ask(t, s, "", "GET", path, "", ""); !strings.Contains(a.body, want) {
			t.Errorf("%s: status %d: %s, want %s", path, a.status, a.body, want)
		}
	}
	// Who may not see the cluster sees none of it.
	token := s.User("carol", "land")
	for _, path := range []string{"/v1/certificates/" + id, "/v1/clusters/cfd/certificates", "/v1/certificates/history?of=class:epyc", "/v1/certificates/compare?of=cfd&of=cfd"} {
		if a := ask(t, s, token, "GET", path, "", ""); a.status != http.StatusNotFound {
			t.Errorf("%s: status %d: %s", path, a.status, a.body)
		}
	}
	if a := ask(t, s, token, "GET", "/v1/certificates", "", ""); !strings.Contains(a.body, `"certificates":[]`) {
		t.Errorf("status %d: %s", a.status, a.body)
	}
}
