package cli_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"math"
	"math/rand/v2"
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
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
	"github.com/muster-hpc/muster/wire"
	"go.yaml.in/yaml/v3"
)

// lab is a site whose clusters have certificates.
type lab struct {
	*controltest.Site
	r *rand.Rand
}

func newLab(t *testing.T) lab {
	t.Helper()
	public, err := certificate.NewPublicKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)) // that of storetest.Signed
	if err != nil {
		t.Fatal(err)
	}
	s := controltest.Start(t, controltest.Options{Machines: 6, Build: true, Control: func(c *control.Config) {
		c.SigningKeys = func() []muster.SigningKey { return []muster.SigningKey{certificate.NewKey(public, time.Time{})} }
	}})
	return lab{s, rand.New(rand.NewPCG(1, 20))}
}

// cluster is a new one of two nodes.
func (l lab) cluster(w *world, name string) wire.Cluster {
	l.T.Helper()
	ready(l.T, l.Site, w, name, "-n", "2", "--head", "shared")
	var c wire.Cluster
	if err := json.Unmarshal([]byte(w.run("show", name, "-o", "json").out), &c); err != nil {
		l.T.Fatal(err)
	}
	return c
}

func (l lab) metric(name, unit string, value float64) muster.Metric {
	m := muster.Metric{Name: name, Unit: unit, Less: unit == "s", Launches: 15, Samples: 150, Verdict: muster.GradeUnknown}
	for range m.Launches {
		m.ByLaunch = append(m.ByLaunch, value*math.Exp(0.005*l.r.NormFloat64()))
	}
	m.Median, m.Min, m.Max = stat.Median(m.ByLaunch), slices.Min(m.ByLaunch), slices.Max(m.ByLaunch)
	return m
}

// measure puts certificates of a cluster and its nodes; the manifest is returned.
func (l lab) measure(cluster wire.Cluster, at time.Time, edit func(node int, c *muster.Certificate)) muster.CertificateID {
	l.T.Helper()
	at = at.UTC().Truncate(time.Second)
	base := storetest.NewCertificate(cluster.ID, "")
	base.ClusterName, base.Made, base.Began, base.Ended, base.Expires, base.Class = cluster.Name, at, at.Add(-time.Minute), at, at.Add(60*24*time.Hour), "standard"
	base.Schedule = &muster.Schedule{Seed: "1", Launches: 15}
	base.Conditions = muster.TestEnvironment{Provider: "fake", Processor: "Fake 9000", Cores: 4, Threads: 4, Kernel: "6.18.5", Probe: &muster.Probe{Source: "sha256:aa"}}
	all := base
	all.ID, all.Kind, all.Machine = muster.NewCertificateID(), muster.CertifiesCluster, ""
	all.Metrics = []muster.Metric{l.metric("alltoall", "B/s", 1e9)}
	err := l.Store.Update(l.T.Context(), muster.System(), func(tx *store.Tx) error {
		for i, n := range cluster.Nodes {
			c := base
			c.ID, c.Node, c.Machine = muster.NewCertificateID(), n.Name, n.Machine
			c.Metrics = []muster.Metric{l.metric("dgemm", "flop/s", 1e11), l.metric("stream.triad", "B/s", 2.5e10), l.metric("latency", "s", 9e-8)}
			c.Metrics[2].Size = 1 << 20
			if edit != nil {
				edit(i, &c)
			}
			s := storetest.Signed(l.T, c)
			if err := tx.PutCertificate(s); err != nil {
				return err
			}
			all.Nodes = append(all.Nodes, s.Entry())
		}
		if edit != nil {
			edit(-1, &all)
		}
		return tx.PutCertificate(storetest.Signed(l.T, all))
	})
	if err != nil {
		l.T.Fatal(err)
	}
	return all.ID
}

// scale makes one metric so much larger.
func scale(m *muster.Metric, by float64) {
	for i := range m.ByLaunch {
		m.ByLaunch[i] *= by
	}
	m.Median, m.Min, m.Max = stat.Median(m.ByLaunch), slices.Min(m.ByLaunch), slices.Max(m.ByLaunch)
}

// What is exported through the API is what was signed, and verifies without
// anything else.
func TestCertificateExport(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w := at(t, l.Site)
	cfd := l.cluster(w, "cfd")
	for _, line := range []string{"certificate show cfd", "certificate export cfd", "certificate show cfd n01"} {
		w.refused(3, muster.ReasonNoSuchCertificate, strings.Fields(line)...).naming("cfd", "muster certificate run cfd")
	}
	w.run("certificate", "list").want(t, 0, "muster certificate run CLUSTER")
	id := l.measure(cfd, time.Now().Add(-time.Hour), func(node int, c *muster.Certificate) {
		if node == 1 {
			c.Certified, c.Caveats = false, []muster.Caveat{{Code: "shared", Text: "others can use it, too"}}
			c.Verdict = muster.GradeLow
			loss := 0.1
			c.Findings = []muster.Finding{{Code: "slow-node", Text: "it is slow\x1b[2J", Loss: &loss, Confirmed: true, Cause: "a neighbour"}}
		}
		if node < 0 {
			c.Certified, c.Verdict = false, muster.GradeLow
			c.Caveats = []muster.Caveat{{Code: "shared", Text: "others can use it, too"}}
			c.Omitted = []muster.Omission{{What: "pairs", Text: "no time"}}
		}
	})
	r := w.run("certificate", "list").want(t, 0, string(id)+" +cfd +- +standard +quick +low +no ")
	if strings.Count(r.out, "pc-") != 1 {
		t.Errorf("without CLUSTER those of nodes are not listed:\n%s", r.out)
	}
	w.run("certificate", "list", "cfd").want(t, 0, `cfd\.n01 +fake-0`, `cfd\.n02 +fake-0`, string(id))
	w.run("certificate", "show", "cfd").want(t, 0, "certified +no: others can use it, too", "alltoall +1\\.\\d+ GB/s|999\\.\\d MB/s", "NODE +MACHINE", "not measured: pairs: no time", "measured +quick, from")
	w.run("certificate", "show", "cfd", "n02").want(t, 0, `slow-node, confirmed: it is slow�\[2J: a neighbour`, `latency 1 MiB +\d+\.\d+ ns`, "dgemm +.* Gflop/s")
	shown := w.run("certificate", "show", string(id), "-o", "json").want(t, 0)
	dir := filepath.Join(t.TempDir(), "papers")
	w.run("certificate", "export", "cfd", "--to", dir+"/").want(t, 0, "3 certificates written to ")
	w.run("certificate", "verify", dir).want(t, 0, "cluster.json +"+string(id)+" +cluster cfd +valid +low", "n01.json", "n02.json")
	bundle := dir + ".json"
	w.run("certificate", "export", string(id), "--to", bundle).want(t, 0, "3 certificates")
	w.run("certificate", "verify", bundle).want(t, 0, "valid")
	w.run("certificate", "export", "cfd", "--to", dir).want(t, 0, "3 certificates") // a directory that is there
	// Others' files are left alone.
	if err := os.WriteFile(filepath.Join(dir, "cluster.json"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.refused(4, muster.ReasonFileExists, "certificate", "export", "cfd", "--to", dir).naming("cluster.json", "--replace")
	w.run("certificate", "export", "cfd", "--to", dir, "--replace").want(t, 0, "3 certificates")
	w.refused(2, muster.ReasonContradiction, "certificate", "run", "cfd", "--quick", "--full").naming("--quick", "--full")
	text := w.run("certificate", "export", "cfd").want(t, 0).out
	if file, err := os.ReadFile(bundle); err != nil || string(file) != text || strings.Count(text, "\n") != 3 {
		t.Errorf("%v: one file and standard output differ", err)
	}
	// Byte by byte.
	split, err := certificate.Split([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	err = l.Store.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		for _, e := range split {
			s, err := certificate.Read(e)
			if err != nil {
				return err
			}
			if body, err := tx.CertificateEnvelope(s.Certificate.ID); err != nil || !bytes.Equal(body, e) {
				t.Errorf("%s is not what was signed: %v", s.Certificate.ID, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// What is shown for programs is genuine, too.
	if err := os.WriteFile(filepath.Join(dir, "cluster.json"), []byte(shown.out), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run("certificate", "verify", dir).want(t, 0, "valid")
	if err := os.WriteFile(bundle, []byte(strings.Replace(text, `"launches":15`, `"launches":16`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.refused(1, muster.ReasonCorrupt, "certificate", "verify", bundle)
	one := w.run("certificate", "export", "cfd", "n01").want(t, 0)
	if strings.Count(one.out, "\n") != 1 || !strings.Contains(one.out, `"node":"n01"`) {
		t.Errorf("got %s", one.out)
	}
	w.refused(2, muster.ReasonFileUnwritable, "certificate", "export", "cfd", "--to", "/proc/nothing/x.json")
	w.run("certificate", "export", "cfd", "-o", "yaml").want(t, 2, "reason: unknown-format")
	w.refused(2, muster.ReasonBadUsage, "certificate", "export").naming("CLUSTER")
	w.refused(2, muster.ReasonBadUsage, "certificate", "show", string(id), "n01").naming("n01")
	w.refused(3, muster.ReasonNoSuchCertificate, "certificate", "show", "pc-2222222222").naming("pc-2222222222")
	w.refused(3, muster.ReasonNoSuchCluster, "certificate", "show", "cdf").naming("cfd")
	w.run("__complete", "certificate", "show", "pc").want(t, 0, string(id))
	w.run("__complete", "certificate", "export", "cfd", "n").want(t, 0, "n01\nn02")
	// The server knows of a newer one; who has only the files does not.
	l.measure(cfd, time.Now(), func(node int, c *muster.Certificate) {
		if node < 0 {
			c.Supersedes = []muster.CertificateID{id}
		}
	})
	w.refused(4, muster.ReasonConflict, "certificate", "verify", dir).naming(string(id) + ".* pc-")
	keys := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(keys, []byte(w.run("certificate", "key", "show", "-o", "json").want(t, 0).out), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run("certificate", "verify", dir, "--key", keys).want(t, 0, "valid")
}

func TestHistory(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w := at(t, l.Site)
	cfd := l.cluster(w, "cfd")
	w.refused(3, muster.ReasonNoSuchCertificate, "history", "cfd").naming("cfd", "muster certificate run cfd")
	w.refused(3, muster.ReasonNoSuchCertificate, "history", string(cfd.Nodes[0].Machine)).naming("fake-0", "muster certificate run CLUSTER")
	w.refused(3, muster.ReasonNoSuchCertificate, "history", "standard").naming("standard", "muster certificate run CLUSTER")
	w.refused(3, muster.ReasonNotFound, "history", "cdf").naming("cdf", "cfd")
	w.refused(3, muster.ReasonNoSuchClass, "history", "class:x").naming("x")
	w.refused(3, muster.ReasonNoSuchMachine, "history", "machine:fake-99").naming("fake-99")
	w.refused(2, muster.ReasonBadUsage, "history").naming("CLUSTER")
	now := time.Now()
	for d := range 24 {
		l.measure(cfd, now.AddDate(0, 0, d-24), func(node int, c *muster.Certificate) {
			if node >= 0 {
				day := 0.01 * l.r.NormFloat64()
				if d >= 14 {
					day += math.Log(0.93)
					c.Conditions.Kernel = "6.19.0"
				}
				scale(&c.Metrics[1], math.Exp(day))
				if d == 23 {
					scale(&c.Metrics[0], 0.8)
				}
			}
		})
	}
	w.run("history", "cfd", "--ascii").want(t, 0, "cluster cfd: 24 measurements", "METRIC +OVER TIME +MIN +MEDIAN +MAX +NEWEST +NEXT +SEES", `stream\.triad .*stream|stream\.triad`,
		`stream\.triad went from 2\d\.\d\d GB/s to 2\d\.\d\d GB/s \(-\d\.\d %\).* worse`, "CONDITION", "kernel +6.18.5 +6.19.0", "dgemm is 7\\d\\.\\d\\d Gflop/s, .* worse", "!", "alltoall")
	var h wire.History
	r := w.run("history", "cfd", "--metric", "stream", "-o", "json").want(t, 0)
	if err := json.Unmarshal([]byte(r.out), &h); err != nil || len(h.Metrics) != 1 || len(h.Metrics[0].Points) != 24 || len(h.Metrics[0].Changes) != 1 || h.Measurements[0].Certificate == "" || h.Kind != "cluster" {
		t.Errorf("%v\n%s", err, r.out)
	}
	machine := string(cfd.Nodes[0].Machine)
	w.run("history", machine).want(t, 0, "machine "+machine+": 24 measurements", "latency 1 MiB", `1?\d\d\.\d\d? ns|9\d\.\d\d ns`)
	w.run("history", "machine:"+machine, "--since", "60h").want(t, 0, "machine "+machine+": 2 measurements")
	r = w.run("history", "class:standard", "-o", "json").want(t, 0)
	h = wire.History{}
	if err := json.Unmarshal([]byte(r.out), &h); err != nil || h.Kind != "class" || len(h.Measurements) != 24 || h.Measurements[0].Nodes != 2 || strings.Contains(r.out, "pc-") || strings.Contains(r.out, "fake-0") {
		t.Errorf("a class tells figures only: %v\n%s", err, r.out)
	}
	for _, line := range []string{"history cfd", "compare cfd " + machine, "certificate show cfd", "certificate list"} {
		var v any
		if r := w.run(append(strings.Fields(line), "-o", "yaml")...).want(t, 0); yaml.Unmarshal([]byte(r.out), &v) != nil || strings.Contains(r.out, "null") {
			t.Errorf("%s: %s", line, r.out)
		}
	}
	w.refused(3, muster.ReasonNoMetric, "history", "cfd", "--metric", "nothing").naming("nothing", "--metric")
	w.refused(3, muster.ReasonNoSuchCertificate, "history", "cfd", "--since", "1h")
	w.refused(2, muster.ReasonBadValue, "history", "cfd", "--since", "yesterday").naming("--since")
	w.run("__complete", "history", "").want(t, 0, "cfd\n", "fake-01\n", "standard\n")
	// Of a deleted cluster by its ID; and nobody else's.
	w.with("MUSTER_TOKEN", l.User("carol", "land")).refused(3, muster.ReasonNotFound, "history", "cfd").naming("cfd")
	w.refused(3, muster.ReasonNoSuchCertificate, "history", machine)
	w.refused(3, muster.ReasonNoSuchCertificate, "history", "standard")
	w.run("certificate", "list").want(t, 0, "No certificates")
	w.refused(3, muster.ReasonNoSuchCluster, "certificate", "list", "cfd")
	w.refused(3, muster.ReasonNoSuchCertificate, "certificate", "show", string(h.Measurements[0].Certificate)+"pc-2222222222").naming("pc-2222222222")
	w.with("MUSTER_TOKEN", "").run("delete", "cfd", "--wait").want(t, 0)
	w.run("history", string(cfd.ID)).want(t, 0, "24 measurements")
	w.refused(3, muster.ReasonNotFound, "history", "cfd")
}

func TestCompare(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w := at(t, l.Site)
	cfd := l.cluster(w, "cfd")
	wind := l.cluster(w, "wind")
	w.refused(3, muster.ReasonNoSuchCertificate, "compare", "cfd", "wind").naming("cfd", "muster certificate run cfd")
	l.measure(cfd, time.Now().Add(-time.Hour), nil)
	second := l.measure(wind, time.Now().Add(-time.Hour), func(node int, c *muster.Certificate) {
		if node >= 0 {
			scale(&c.Metrics[1], 0.9)
			scale(&c.Metrics[2], 0.9)
		}
		c.Conditions.Kernel = "6.19.0"
	})
	w.run("compare", "cfd", "wind").want(t, 0, "WIND against CFD|wind against cfd", `stream\.triad +2\d\.\d\d GB/s +2\d\.\d\d GB/s +-(9|10)\.\d % +.*worse`,
		`latency 1 MiB .* -(9|10)\.\d % .*better`, "dgemm .*indistinguishable", "kernel: 6.18.5.* 6.19.0", "1 better, 1 worse, 2 indistinguishable, 0 not comparable", "Benjamini-Hochberg", "4 tests")
	var c wire.Comparison
	r := w.run("compare", string(second), "cfd", string(cfd.Nodes[0].Machine), "-o", "json").want(t, 0)
	if err := json.Unmarshal([]byte(r.out), &c); err != nil || len(c.Sides) != 3 || c.Tests != 7 || c.Sides[0].Kind != "certificate" || c.Sides[2].Kind != "machine" || c.Sides[1].Nodes != 2 {
		t.Errorf("%v\n%s", err, r.out)
	}
	for _, m := range c.Metrics {
		want := map[string]string{"stream.triad": wire.Better, "latency": wire.Worse}[m.Name]
		if m.Verdict != want && (want != "" || m.Verdict != wire.Indistinguishable) {
			t.Errorf("%s is %s", m.Name, m.Verdict)
		}
	}
	// Only like with like.
	l.measure(wind, time.Now(), func(_ int, c *muster.Certificate) { c.Conditions.Processor = "Fake 9001" })
	w.run("compare", "cfd", "wind").want(t, 0, "processor: Fake 9000.* Fake 9001", "dgemm .* not-comparable", "not comparable: because of processor", "add --across processor", "4 not comparable")
	w.run("compare", "cfd", "wind", "--across", "processor").want(t, 0, "compared across", "0 not comparable")
	w.refused(2, muster.ReasonInvalid, "compare", "cfd", "wind", "--across", "probe").naming("probe", "processor")
	l.measure(wind, time.Now().Add(time.Second), func(_ int, c *muster.Certificate) {
		c.Certified, c.Caveats = false, []muster.Caveat{{Code: "oversubscribed", Text: "x"}}
	})
	w.run("compare", "cfd", "wind").want(t, 0, "certified: yes.* no: oversubscribed", "cfd +cluster +\\S+ \\S+ +yes", "wind +cluster +\\S+ \\S+ +no: oversubscribed", `stream\.triad +2\d\.\d\d GB/s +2\d\.\d\d GB/s .*not-comparable`, "4 not comparable")
	// Classes by machines.
	w.run("compare", "class:standard", "cfd", "--metric", "dgemm", "--across", "processor").want(t, 0, "Ranks over machines|too few", "standard +class")
	w.refused(2, muster.ReasonBadUsage, "compare", "cfd").naming(`\bB\b`)
	w.refused(2, muster.ReasonNotOneThing, "compare", "cfd", "cfd").naming("cfd")
	w.refused(3, muster.ReasonNotFound, "compare", "cfd", "nothing").naming("nothing")
	w.refused(3, muster.ReasonNoMetric, "compare", "cfd", "wind", "--metric", "nothing").naming("--metric")
	w.refused(2, muster.ReasonTooMany, append([]string{"compare"}, strings.Fields(strings.Repeat("cfd ", 9))...)...).naming("9")
	w.run("__complete", "compare", "cfd", "w").want(t, 0, "wind")
	w.with("MUSTER_TOKEN", l.User("carol", "land")).refused(3, muster.ReasonNoSuchCertificate, "compare", string(second), "cfd").naming(string(second))
}
