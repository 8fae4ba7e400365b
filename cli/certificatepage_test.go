package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

const dayAfter = "2026-03-02"

// A page is written of what was verified, and says so.
func TestCertificatePage(t *testing.T) {
	t.Parallel()
	p := writePapers(t)
	w := at(t, nil)
	to := filepath.Join(p.dir, "cfd.html")
	r := w.run("certificate", "page", filepath.Join(p.dir, "cfd"), "--key", p.pem, "--at", dayAfter, "--to", to)
	if r.code != 0 || r.err != "" || !strings.Contains(r.out, "cfd.html has the page of cluster cfd (pc-4444444444), verified") {
		t.Fatalf("status %d\n%s%s", r.code, r.out, r.err)
	}
	html, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<b>Verified.</b>", "on 2 March 2026, 00:00 UTC", "Performance report, not certified", "pc-2222222222", "n02 (not certified)"} {
		if !bytes.Contains(html, []byte(want)) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if bytes.ContainsRune(html, '\x1b') {
		t.Error("the page has a control character of a certificate")
	}
	// The same from a bundle; a node alone; the standard output and input.
	body, err := os.ReadFile(p.bundle)
	if err != nil {
		t.Fatal(err)
	}
	r = w.stdin(string(body)).run("cert", "page", "-", "--key", p.ring, "--at", dayAfter, "--to", "-")
	if r.code != 0 || !bytes.Equal(html, []byte(r.out)) {
		t.Errorf("status %d, and another page\n%s", r.code, r.err)
	}
	for _, line := range [][]string{{p.n2, "--key", p.pem, "--at", dayAfter}, {p.bundle, "--node", "n02", "--key", p.pem, "--at", dayAfter}, {p.n2, "--no-verify"}} {
		r := w.run(append([]string{"certificate", "page", "--to", "-"}, line...)...)
		if r.code != 0 || !strings.Contains(r.out, "<h1>n02 of cfd</h1>") || strings.Contains(r.out, "<b>Not verified.</b>") != (len(line) == 2) {
			t.Errorf("%v: status %d\n%.3000s%s", line, r.code, r.out, r.err)
		}
	}
	r = w.run("certificate", "page", p.n1, "--no-verify", "--to", to, "-o", "json")
	var out wire.CertificatePage
	if err := json.Unmarshal([]byte(r.out), &out); err != nil || r.code != 0 || out.Verified || out.File != to || out.Node != "n01" || out.Bytes < 1000 || out.Digest == "" {
		t.Errorf("status %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	if info, err := os.Stat(to); err != nil || info.Size() != int64(out.Bytes) {
		t.Errorf("%v, %v: not %d bytes", info, err, out.Bytes)
	}
}

// What cannot be believed gets no page, and the reason is that of verify.
func TestCertificatePageFails(t *testing.T) {
	t.Parallel()
	p := writePapers(t)
	good, err := os.ReadFile(p.n1)
	if err != nil {
		t.Fatal(err)
	}
	altered := p.file(t, "altered.json", bytes.Replace(good, []byte("n01"), []byte("n03"), 1))
	w := at(t, nil).with("MUSTER_SERVER", "unix:"+filepath.Join(p.dir, "no.sock"))
	to := filepath.Join(p.dir, "page.html")
	for _, c := range []struct {
		args  []string
		code  int
		why   muster.Reason
		names string
	}{
		{[]string{altered, "--key", p.pem, "--at", dayAfter}, 1, muster.ReasonCorrupt, "altered.json"},
		{[]string{p.cluster, p.n1, "--key", p.pem, "--at", dayAfter}, 3, muster.ReasonNotFound, "n02"},
		{[]string{p.n1, "--key", p.pem, "--at", "2027-01-01"}, 4, muster.ReasonConflict, "n01.json"},
		{[]string{p.n1}, 7, muster.ReasonServerUnreachable, "--key FILE"},
		{[]string{"--no-verify"}, 2, muster.ReasonBadUsage, "FILE"},
		{[]string{p.pem, "--no-verify"}, 2, muster.ReasonInvalid, "muster.pub"},
		{[]string{p.ring, "--no-verify"}, 2, muster.ReasonInvalid, "keys.json"},
		{[]string{p.n1, "--no-verify", "--key", p.pem}, 2, muster.ReasonBadUsage, "--no-verify"},
		{[]string{p.n1, p.n2, "--no-verify"}, 2, muster.ReasonAmbiguous, "2"},
		{[]string{p.bundle, "--no-verify", "--node", "n07"}, 3, muster.ReasonNoSuchCertificate, "n01, n02"},
		{[]string{p.cluster, "--no-verify", "--node", "n01"}, 3, muster.ReasonNoSuchCertificate, "n01"},
		{[]string{p.n1, "--no-verify", "--to", p.n1}, 2, muster.ReasonFileUnwritable, p.n1},
		{[]string{p.n1, "--no-verify", "--to", filepath.Join(p.dir, "none", "x.html")}, 2, muster.ReasonFileUnwritable, "x.html"},
	} {
		w.refused(c.code, c.why, append([]string{"certificate", "page", "--to", to}, c.args...)...).naming(c.names)
		if _, err := os.Stat(to); err == nil {
			t.Fatalf("%v: there is a page", c.args)
		}
	}
	if now, err := os.ReadFile(p.n1); err != nil || !bytes.Equal(now, good) {
		t.Error("the certificate was written over")
	}
	w.refused(2, muster.ReasonBadUsage, "certificate", "page", p.n1, "--no-verify", "--to", "-")
	// Altered ones can be looked at, and the page says what they are worth.
	r := w.run("certificate", "page", altered, "--no-verify", "--to", "-")
	if r.code != 0 || !strings.Contains(r.out, "<b>Not verified.</b>") {
		t.Errorf("status %d\n%s", r.code, r.err)
	}
}
