package cli_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// papers is a directory of certificates: a cluster's and those of its two
// nodes, with the key that signed them.
type papers struct {
	dir, cluster, n1, n2, bundle, pem, base64, ring string
	key                                             ed25519.PrivateKey
}

func madeAt() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func writePapers(t *testing.T) papers {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	p := papers{dir: t.TempDir(), key: ed25519.NewKeyFromSeed(seed)}
	public, err := certificate.NewPublicKey(p.key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(certificate.Ring{Keys: []muster.SigningKey{certificate.NewKey(public, madeAt())}})
	if err != nil {
		t.Fatal(err)
	}
	c := muster.Certificate{
		Version: 1, ID: "pc-2222222222", Kind: muster.CertifiesNode, Cluster: "c-23456789bc", ClusterName: "cfd", Node: "n01", Machine: "local-03",
		Image: muster.ImageID("sha256:" + strings.Repeat("ab", 32)), Made: madeAt(), Expires: madeAt().Add(30 * 24 * time.Hour), Level: muster.ValidateQuick,
		Certified: true, Verdict: muster.GradePass,
	}
	n1 := p.sign(t, c)
	c.ID, c.Node, c.Machine = "pc-3333333333", "n02", "local-04"
	c.Certified, c.Caveats = false, []muster.Caveat{{Code: "oversubscribed", Text: "two machines share a core"}, {Code: "shared", Text: "\x1b[2J"}}
	n2 := p.sign(t, c)
	c.ID, c.Kind, c.Node, c.Machine = "pc-4444444444", muster.CertifiesCluster, "", ""
	for i, e := range [][]byte{n1, n2} {
		s, err := certificate.Verify(e, certificate.Ring{Keys: []muster.SigningKey{certificate.NewKey(public, time.Time{})}}, madeAt(), nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Nodes = append(c.Nodes, muster.CertifiedNode{
			Node: s.Certificate.Node, Machine: s.Certificate.Machine, Certificate: s.Certificate.ID, Digest: s.Digest, Certified: i == 0, Verdict: muster.GradePass,
		})
	}
	all := p.sign(t, c)
	papers := filepath.Join(p.dir, "cfd")
	if err := os.Mkdir(papers, 0o755); err != nil {
		t.Fatal(err)
	}
	p.cluster, p.n1, p.n2 = p.file(t, "cfd/cluster.json", all), p.file(t, "cfd/n01.json", n1), p.file(t, "cfd/n02.json", n2)
	p.file(t, "cfd/readme.txt", []byte("not a certificate"))
	p.bundle = p.file(t, "bundle.json", bytes.Join([][]byte{all, n1, n2}, []byte("\n")))
	p.pem = p.file(t, "muster.pub", []byte(public.PEM()))
	p.base64 = p.file(t, "muster.b64", []byte(public.Base64()+"\n"))
	p.ring = p.file(t, "keys.json", list)
	return p
}

func (p papers) sign(t *testing.T, c muster.Certificate) []byte {
	t.Helper()
	e, err := certificate.Sign(c, p.key)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (p papers) file(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCertificateVerify(t *testing.T) {
	t.Parallel()
	p := writePapers(t)
	w := at(t, nil)
	const day = "2026-03-02"
	for _, line := range [][]string{
		{p.n1, "--key", p.pem},
		{p.n1, p.n2, "--key", p.base64},
		{p.bundle, "--key", p.ring},
		{filepath.Join(p.dir, "cfd"), "--key", p.pem},
		{p.cluster, p.n2, p.n1, "--key", p.pem, "--key", p.ring},
	} {
		r := w.run(append([]string{"certificate", "verify", "--at", day}, line...)...)
		if r.code != 0 || r.err != "" || !strings.Contains(r.out, "valid") {
			t.Errorf("%v: status %d\n%s%s", line, r.code, r.out, r.err)
		}
	}
	body, err := os.ReadFile(p.bundle)
	if err != nil {
		t.Fatal(err)
	}
	r := w.stdin(string(body)).run("cert", "verify", "-", "--key", p.pem, "--at", "2026-03-01T12:00:00Z")
	if r.code != 0 || strings.Count(r.out, "valid") != 3 || !strings.Contains(r.out, "cluster cfd") || !strings.Contains(r.out, "node n02 of cfd") ||
		!strings.Contains(r.out, "no: oversubscribed, shared") {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestCertificateVerifyFails(t *testing.T) {
	t.Parallel()
	p := writePapers(t)
	good, err := os.ReadFile(p.n1)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := certificate.NewPublicKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32)).Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	other := p.file(t, "other.pub", []byte(stranger.PEM()))
	altered := p.file(t, "altered.json", bytes.Replace(good, []byte("n01"), []byte("n03"), 1))
	list, err := os.ReadFile(p.ring)
	if err != nil {
		t.Fatal(err)
	}
	stolen := p.file(t, "stolen.json", bytes.Replace(list, []byte(`"from"`), []byte(`"compromised":"2026-05-01T00:00:00Z","from"`), 1))
	w := at(t, nil).with("MUSTER_SERVER", "unix:"+filepath.Join(p.dir, "no.sock"))
	const day = "2026-03-02"
	for _, c := range []struct {
		args  []string
		code  int
		why   certificate.Reason // of the first that fails
		names string
	}{
		{[]string{altered, "--key", p.pem, "--at", day}, 1, certificate.Altered, "altered.json"},
		{[]string{p.pem, "--key", p.pem, "--at", day}, 2, certificate.NotJSON, "muster.pub"},
		{[]string{p.ring, "--key", p.pem, "--at", day}, 2, certificate.Malformed, "keys.json"},
		{[]string{p.n1, "--key", other, "--at", day}, 3, certificate.UnknownKey, "n01.json"},
		{[]string{p.cluster, p.n1, "--key", p.pem, "--at", day}, 3, certificate.NodeMissing, "n02"},
		{[]string{p.n1, "--key", p.pem, "--at", "2026-03-31T12:00:00Z"}, 4, certificate.Expired, "2026-03-31"},
		{[]string{p.n1, "--key", p.pem, "--at", "2026-02-01"}, 4, certificate.NotYetValid, "2026-02-01"},
		{[]string{p.n1, "--key", stolen, "--at", day}, 5, certificate.KeyCompromised, "n01.json"},
		{[]string{altered, p.n1, "--key", stolen, "--at", day}, 5, certificate.KeyCompromised, "n01.json"}, // the highest
	} {
		r := w.run(append([]string{"certificate", "verify", "-o", "json"}, c.args...)...)
		var list []wire.CertificateChecked
		if err := json.Unmarshal([]byte(r.out), &list); err != nil || r.code != c.code {
			t.Errorf("%v: status %d, want %d, %v\n%s%s", c.args, r.code, c.code, err, r.out, r.err)
			continue
		}
		failed := slices.ContainsFunc(list, func(l wire.CertificateChecked) bool {
			return l.Reason == string(c.why) && l.Error.Hint != "" && strings.Contains(l.Error.Message, c.names)
		})
		if !failed {
			t.Errorf("%v: want %s and %s\n%s%s", c.args, c.why, c.names, r.out, r.err)
		}
	}
	verify := func(args ...string) []string { return append([]string{"certificate", "verify"}, args...) }
	nothing := filepath.Join(p.dir, "nothing")
	w.refused(7, muster.ReasonServerUnreachable, verify(p.n1)...).naming("--key FILE") // and there is no server
	w.refused(2, muster.ReasonBadUsage, verify("--key", p.pem)...).naming("FILE")
	w.refused(2, muster.ReasonInvalid, verify(p.n1, "--key", p.n1)...).naming("n01.json")
	w.refused(2, muster.ReasonBadValue, verify(p.n1, "--key", p.pem, "--at", "yesterday")...).naming("--at", `"yesterday"`)
	w.refused(2, muster.ReasonFileUnreadable, verify(nothing, "--key", p.pem)...).naming(nothing)
	w.refused(2, muster.ReasonFileUnreadable, verify(p.n1, "--key", nothing)...).naming(nothing)
	w.refused(2, muster.ReasonFileUnreadable, verify(t.TempDir(), "--key", p.pem)...).naming(`\.json`)
	w.refused(2, muster.ReasonRequired, verify(p.n1, "--key", "")...).naming("--key")
}

// The server's key can be had from the server, and without one be kept.
func TestCertificateKeys(t *testing.T) {
	t.Parallel()
	p := writePapers(t)
	text, err := os.ReadFile(p.ring)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := certificate.ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	old := ring.Keys[0]
	old.ID, old.Key, old.Until = "sha256:00", "", madeAt() // not looked at
	s := controltest.Start(t, controltest.Options{Control: func(c *control.Config) {
		c.SigningKeys = func() []muster.SigningKey { return []muster.SigningKey{old, ring.Keys[0]} }
	}})
	w := at(t, s)
	pem, err := os.ReadFile(p.pem)
	if err != nil {
		t.Fatal(err)
	}
	if r := w.run("certificate", "key", "show"); r.code != 0 || r.out != string(pem) {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}
	r := w.run("certificate", "key", "show", "-o", "json")
	var list wire.SigningKeys
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || len(list.Keys) != 2 || list.Keys[1] != ring.Keys[0] {
		t.Errorf("status %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	if r := w.run("certificate", "verify", p.bundle, "--at", "2026-03-02"); r.code != 0 || strings.Count(r.out, "valid") != 3 {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}
	none := at(t, controltest.Start(t, controltest.Options{}))
	none.refused(3, muster.ReasonSignsNothing, "certificate", "key", "show")
	none.refused(3, muster.ReasonNotFound, "certificate", "verify", p.n1, "--at", "2026-03-02").naming("n01.json")
}

func TestCertificateVerifyJSON(t *testing.T) {
	t.Parallel()
	p := writePapers(t)
	w := at(t, nil)
	r := w.run("certificate", "verify", p.cluster, p.n2, "--key", p.pem, "--at", "2026-03-02", "-o", "json")
	var list []wire.CertificateChecked
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || len(list) != 2 || r.code != 3 {
		t.Fatalf("status %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	if c := list[0]; c.OK || c.Reason != "node-missing" || c.Error == nil || c.Error.Code != muster.ENotFound || c.ID != "pc-4444444444" || c.File != p.cluster {
		t.Errorf("got %+v", c)
	}
	if c := list[1]; !c.OK || c.Reason != "" || c.Error != nil || c.Node != "n02" || c.Certified || len(c.Caveats) != 2 || c.Digest == "" || !c.Made.Equal(madeAt()) {
		t.Errorf("got %+v", c)
	}
	var told muster.Error
	if err := json.Unmarshal([]byte(r.err), &told); err != nil || told.Code != muster.ENotFound || told.Hint == "" {
		t.Errorf("the error output has %s, %v", r.err, err)
	}
}
