package measure

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/store"
)

// measured is everything that launches said.
type measured struct {
	first, again []analysis.Launch // those that count
	failed       int
	conditions   []map[string]nodeConditions // in the order of reading
}

// conclude judges, has suspects measured again, and files the certificates.
func (j *job) conclude(ctx context.Context, s *subject, steps []step) error {
	said, err := j.read(steps)
	if err != nil {
		return err
	}
	if len(said.first) == 0 {
		return muster.Errorf(muster.EUnavailable, "no launch of the probe came to an end: %s", j.lastFailure(steps)).Because(muster.ReasonNotMeasured).
			WithHint("look at `muster logs %s %s`, and measure again with `muster certificate run %s`", s.cluster.Name, s.launcher, s.cluster.Name)
	}
	if err := j.recount(ctx, s); err != nil {
		return err
	}
	past, err := j.past(ctx, s)
	if err != nil {
		return err
	}
	found, err := s.judge(said, past)
	if err != nil {
		return err
	}
	if len(found.suspects)+len(found.links) > 0 && len(s.m.Suspects)+len(s.m.SuspectLinks) == 0 && found.worthwhile {
		// They are measured again before anybody is condemned.
		if err := j.note(ctx, s, func(m *muster.Measurement) {
			m.Suspects, m.SuspectLinks = found.suspects, found.links
			s.m.Suspects, s.m.SuspectLinks = found.suspects, found.links
			m.Launches = len(s.steps())
		}); err != nil {
			return err
		}
		more := s.steps()
		if err := j.make(ctx, s, more, len(steps), said.failed); err != nil {
			return err
		}
		return j.conclude(ctx, s, more)
	}
	return j.file(ctx, s, said, found)
}

// read reads what is kept.
func (j *job) read(steps []step) (measured, error) {
	var out measured
	for _, st := range steps {
		path := j.kept(st)
		if _, err := os.Stat(path); err != nil {
			out.failed++
			continue
		}
		if st.run == nil {
			c, err := readConditions(path)
			if err != nil {
				return out, err
			}
			out.conditions = append(out.conditions, c)
			continue
		}
		l, err := readLaunch(path)
		switch {
		case err != nil:
			return out, err
		case st.again:
			out.again = append(out.again, l)
		default:
			out.first = append(out.first, l)
		}
	}
	return out, nil
}

// lastFailure is why the last step that failed did.
func (j *job) lastFailure(steps []step) string {
	for _, st := range slices.Backward(steps) {
		if b, err := os.ReadFile(j.failedAt(st)); err == nil && len(b) > 0 {
			return string(b)
		}
	}
	return "nothing is known of why"
}

// found is what was judged.
type found struct {
	results    analysis.Results
	candidates []analysis.Candidate
	suspects   []string // that were not measured again yet
	links      []muster.NodePair
	worthwhile bool // nobody else can have slowed them down
	omitted    []muster.Omission
}

// judge says what the launches show.
func (s *subject) judge(said measured, past past) (found, error) {
	var f found
	nodes := s.validated()
	f.candidates = s.candidates(said)
	witnesses := s.witnesses(said, f.candidates, past)
	for i, w := range witnesses {
		if v, disturbed := w.Caveat(); disturbed {
			f.candidates[i].Caveats = append(f.candidates[i].Caveats, v)
		}
	}
	f.worthwhile = !slices.ContainsFunc(f.candidates, func(c analysis.Candidate) bool {
		return c.Conditions.Oversubscribed || c.Conditions.Shared
	})
	collected := analysis.Collect(nodes, said.first)
	known := past.of(f.candidates, collected.Distances())
	collected.Remember(nodes, known)
	rules, links := analysis.NodeRules(s.m.Level), analysis.LinkRules(s.m.Level)
	var err error
	if f.results, err = analysis.Judge(s.m.Level, collected); err != nil {
		return f, err
	}
	for i := range f.results.Nodes {
		if n := f.results.Nodes[i]; n.Metric.Verdict == muster.GradeLow && !slices.Contains(f.suspects, nodes[n.Node].Name) {
			f.suspects = append(f.suspects, nodes[n.Node].Name)
		}
	}
	for _, judged := range f.results.Fabrics {
		for _, n := range judged.Nodes {
			if n.Metric.Verdict == muster.GradeLow && !slices.Contains(f.suspects, nodes[n.Node].Name) {
				f.suspects = append(f.suspects, nodes[n.Node].Name)
			}
		}
	}
	again := append(analysis.SuspectEnds(f.results.Fabrics, s.numbers(f.suspects)), analysis.SuspectLinks(f.results.Fabrics)...)
	slices.SortFunc(again, func(p, q analysis.Pair) int { return cmp.Or(p.A-q.A, p.B-q.B) })
	for _, l := range slices.Compact(again) {
		f.links = append(f.links, muster.NodePair{From: nodes[l.A].Name, To: nodes[l.B].Name})
	}
	confirmed := map[int]bool{}
	if len(said.again) > 0 {
		again := analysis.Collect(nodes, said.again)
		again.Remember(nodes, known)
		if confirmed, err = s.confirm(again, rules, &f); err != nil {
			return f, err
		}
		// Nodes first: links are judged again by what they promise.
		if _, err = links.NodesAgain(collected.Fabrics, f.results.Fabrics, again.Fabrics, s.suspects()); err != nil {
			return f, err
		}
		if err = links.LinksAgain(collected.Fabrics, f.results.Fabrics, again.Fabrics, s.suspectLinks()); err != nil {
			return f, err
		}
	}
	analysis.Refer(f.candidates, f.results.Nodes, s.targets)
	if err := analysis.Share(nodes, f.results.Nodes); err != nil {
		return f, err
	}
	for i := range f.results.Fabrics {
		judged := f.results.Fabrics[i]
		analysis.ReferFabric(f.candidates, &judged, s.targets)
		analysis.ShareFabric(nodes, f.results.Nodes, &judged)
		f.results.Fabrics[i] = judged
		f.results.Findings = append(f.results.Findings, analysis.FabricFindings(nodes, judged)...)
		for _, l := range judged.Links {
			f.results.Figures = append(f.results.Figures, muster.PairFigure{
				Metric: l.Metric.Name, Size: l.Metric.Size, From: nodes[l.A].Name, To: nodes[l.B].Name, Value: l.Metric.Median,
			})
		}
	}
	analysis.ShareWhole(nodes, f.results.Nodes, f.results.Whole)
	f.results.Findings = append(analysis.Findings(nodes, f.results.Nodes, confirmed), f.results.Findings...)
	f.results.Findings = append(f.results.Findings, analysis.WholeFindings(f.results.Whole)...)
	f.results.Findings = append(f.results.Findings, analysis.WrongFindings(nodes, collected.Wrong)...)
	f.results.Findings = append(f.results.Findings, analysis.Differences(f.candidates)...)
	f.results.Findings = append(f.results.Findings, s.misplaced(nodes, f.results.Figures)...)
	f.results.Findings = analysis.Causes(nodes, f.results.Findings, f.results.Nodes, f.results.Fabrics, witnesses)
	if text := s.leftOut(); text != "" {
		f.omitted = append(f.omitted, muster.Omission{What: "pairs", Text: text})
	}
	_, left := s.sweeps()
	f.omitted = append(f.omitted, left...)
	f.omitted = append(f.omitted, analysis.LeftOut(nodes, said.first)...)
	f.omitted = append(f.omitted, omitted(said.first)...)
	f.results.Sweeps, f.results.NodeSweeps = analysis.Sweeps(nodes, said.first)
	if said.failed > 0 {
		f.omitted = append(f.omitted, muster.Omission{What: "launches", Text: plaintext.Count(said.failed, "launch") + " failed and left nothing that counts"})
	}
	return f, nil
}

// misplaced are the nodes that measure as if their machines stood elsewhere.
func (s *subject) misplaced(nodes []analysis.Node, pairs []muster.PairFigure) []muster.Finding {
	list := analysis.MisplacedFindings(nodes, pairs)
	for i := range list {
		at := slices.IndexFunc(nodes, func(n analysis.Node) bool { return n.Name == list[i].Node })
		list[i].Machine = s.machines[at].ID
	}
	return list
}

// mostOmissions of launches are told: words of nodes could be others each time.
const mostOmissions = 20

// omitted is what nodes could not measure, with those of one reason together.
func omitted(launches []analysis.Launch) []muster.Omission {
	hosts := map[muster.Omission][]string{}
	for _, l := range launches {
		for _, o := range l.Omitted {
			k := muster.Omission{What: o.What, Text: o.Text}
			if !slices.Contains(hosts[k], o.Host) {
				hosts[k] = append(hosts[k], o.Host)
			}
		}
	}
	var list []muster.Omission
	for k, names := range hosts {
		k.Text = nodeset.Fold(names) + ": " + k.Text
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b muster.Omission) int {
		return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Text, b.Text))
	})
	return list[:min(len(list), mostOmissions)]
}

// confirm puts what suspects showed when they were measured again in the place of
// what made them suspects. It returns whom that condemns.
func (s *subject) confirm(collected analysis.Collected, rules analysis.Rules, f *found) (map[int]bool, error) {
	suspect := map[int]bool{}
	for _, i := range s.suspects() {
		suspect[i] = true
	}
	judged, err := rules.Condemned(collected.Nodes, func(n int) bool { return suspect[n] })
	if err != nil {
		return nil, err
	}
	condemned := map[int]bool{}
	for _, n := range judged {
		if suspect[n.Node] && n.Metric.Verdict == muster.GradeLow {
			condemned[n.Node] = true
		}
	}
	for i, n := range f.results.Nodes {
		if !suspect[n.Node] {
			continue
		}
		for _, again := range judged {
			if again.Node == n.Node && again.Metric.Name == n.Metric.Name && again.Metric.Size == n.Metric.Size && again.Metric.Threads == n.Metric.Threads {
				f.results.Nodes[i] = again
			}
		}
	}
	f.suspects = nil
	return condemned, nil
}

// file signs the certificates and ends the measurement, in one transaction.
func (j *job) file(ctx context.Context, s *subject, said measured, f found) error {
	now := j.r.c.Clock.Now()
	subject := analysis.Subject{
		Cluster: s.cluster.ID, ClusterName: s.cluster.Name, Issuer: j.r.c.Issuer, Image: s.cluster.Image, Level: s.m.Level, Trigger: s.m.Trigger,
		Nodes: f.candidates, Began: s.began(), Ended: now, Made: now, Life: j.r.c.Life, Omitted: f.omitted, NewID: muster.NewCertificateID,
		Schedule: s.schedule(said, f),
	}
	return j.r.c.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		if err := s.current(tx); err != nil {
			return err
		}
		present, err := tx.Certificates(store.CertificateFilter{Cluster: s.cluster.ID, Present: true})
		if err != nil {
			return err
		}
		supersede(&subject, present)
		var entries []muster.CertifiedNode
		var nodeCerts []muster.Certificate
		for _, c := range analysis.NodeCertificates(subject, f.results) {
			c.Use = j.use.series(c.Node)
			signed, err := j.sign(tx, c)
			if err != nil {
				return err
			}
			entries, nodeCerts = append(entries, signed.Entry()), append(nodeCerts, signed.Certificate)
		}
		manifest := analysis.Manifest(subject, f.results, s.entries(entries, present), manifests(present))
		signed, err := j.sign(tx, manifest)
		if err != nil {
			return err
		}
		if err := tellOthers(tx, nodeCerts, now); err != nil {
			return err
		}
		return j.end(tx, s, signed.Certificate, nodeCerts, f.worthwhile, now)
	})
}

func (j *job) sign(tx *store.Tx, c muster.Certificate) (certificate.Signed, error) {
	envelope, err := j.r.c.Sign(c)
	if err != nil {
		return certificate.Signed{}, err
	}
	signed, err := certificate.Read(envelope)
	if err != nil {
		return certificate.Signed{}, err
	}
	return signed, tx.PutCertificate(signed)
}

// end files that it is done, and who is slow. Where others could slow a node down
// nobody is condemned.
func (j *job) end(tx *store.Tx, s *subject, manifest muster.Certificate, nodes []muster.Certificate, worthwhile bool, now time.Time) error {
	c, err := tx.Cluster(s.cluster.ID)
	if err != nil {
		return err
	}
	m := *c.Measurement
	m.Phase, m.Ended, m.ETA, m.Reason = muster.MeasurementDone, now, time.Time{}, nil
	m.Manifest, m.Verdict, m.Certified, m.Low = manifest.ID, manifest.Verdict, manifest.Certified, nil
	for i, n := range nodes {
		if why := condemned(n); why != "" && worthwhile {
			m.Low = append(m.Low, muster.SlowNode{Node: n.Node, Machine: n.Machine, Attempt: s.nodes[i].Attempt, Text: why})
		}
	}
	m.SlowHost = ""
	if worthwhile {
		m.SlowHost = slowHost(nodes)
	}
	c.Measurement = &m
	c.Deferred = s.deferred(c.Deferred, worthwhile)
	text := "measured: " + string(m.Verdict)
	if !m.Certified {
		text += ", not certified"
	}
	return tx.PutCluster(c, text+", "+string(m.Manifest))
}

// condemned reports what a node is condemned for; "" if it is not. Whose processors
// others used is not called slow: but who calculates wrongly is wrong.
func condemned(c muster.Certificate) string {
	disturbed := slices.ContainsFunc(c.Caveats, func(v muster.Caveat) bool {
		return v.Code == muster.CaveatDisturbed || v.Code == muster.CaveatBusy
	})
	for _, f := range c.Findings {
		if f.Code == analysis.WrongResult || f.Code == analysis.SlowNode && f.Confirmed && f.Node == c.Node && !disturbed {
			return f.Text
		}
	}
	return ""
}

// slowHost reports the nodes that lack as much as the others on their host, by the
// figure that lacks most; "" if there are none.
func slowHost(nodes []muster.Certificate) string {
	text, worst := "", 0.0
	for _, c := range nodes {
		for _, f := range c.Findings {
			if f.Code == analysis.SlowHost && f.Confirmed && f.Loss != nil && *f.Loss > worst {
				text, worst = f.Text, *f.Loss
			}
		}
	}
	return text
}

// schedule says how it was measured.
func (s *subject) schedule(said measured, f found) muster.Schedule {
	rules := analysis.NodeRules(s.m.Level)
	sched := muster.Schedule{
		Seed: formatSeed(s.m.Seed), Launches: len(said.first) + len(said.again), Level: rules.Level, FalseFindings: rules.Suspicion, Control: "benjamini-hochberg",
	}
	if len(said.again) > 0 {
		sched.FalseFindings, sched.Control = rules.Condemn, "holm"
	}
	sched.Tests = f.results.Tests()
	for _, st := range s.steps() {
		if st.run != nil {
			sched.Rounds = max(sched.Rounds, len(st.run.Rounds))
		}
	}
	return sched
}

// supersede ends the certificates that the nodes have.
func supersede(s *analysis.Subject, present []store.Certificate) {
	for i := range s.Nodes {
		s.Nodes[i].Supersedes = nil
		for _, c := range present {
			if c.Kind == muster.CertifiesNode && c.Node == s.Nodes[i].Name {
				s.Nodes[i].Supersedes = append(s.Nodes[i].Supersedes, c.ID)
			}
		}
	}
}

// manifests are those that the new one takes the place of.
func manifests(present []store.Certificate) []muster.CertificateID {
	var list []muster.CertificateID
	for _, c := range present {
		if c.Kind == muster.CertifiesCluster {
			list = append(list, c.ID)
		}
	}
	return list
}

// entries are those of the new certificates, and of the others that still stand:
// what was measured of a node that stayed is as good as it was.
func (s *subject) entries(fresh []muster.CertifiedNode, present []store.Certificate) []muster.CertifiedNode {
	for _, c := range present {
		if c.Kind != muster.CertifiesNode || slices.ContainsFunc(fresh, func(e muster.CertifiedNode) bool { return e.Node == c.Node }) {
			continue
		}
		fresh = append(fresh, muster.CertifiedNode{Node: c.Node, Machine: c.Machine, Certificate: c.ID, Digest: c.Digest, Certified: c.Certified, Verdict: c.Verdict})
	}
	return fresh
}
