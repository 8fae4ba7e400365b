package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/certificate"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) certificateList() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "list [CLUSTER]", Aliases: []string{"ls"}, Short: "List certificates, newest first", Args: atMost(1), ValidArgsFunction: a.completeClusters(1),
		Long: `Lists the valid certificates of all clusters you can see, or of one cluster and its
nodes. For a deleted cluster, give its ID.`,
		Example: `  muster certificate list
  muster certificate list cfd --all
  muster certificate list cfd -o json`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			q := wire.CertificateQuery{Present: !all}
			if len(args) > 0 {
				q.Cluster = args[0]
			} else if !all {
				q.Kind = muster.CertifiesCluster
			}
			list, err := k.Certificates(c.Context(), q)
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) { writeCertificates(w, list, q, time.Now()) })
		},
	}
	c.Flags().BoolVar(&all, "all", false, "include superseded certificates; without CLUSTER also those of nodes")
	return c
}

func writeCertificates(w io.Writer, list []wire.CertificateRow, q wire.CertificateQuery, now time.Time) {
	if len(list) == 0 {
		fmt.Fprintf(w, "No certificates. Measure a cluster: muster certificate run %s\n", cmp.Or(q.Cluster, "CLUSTER"))
		return
	}
	t := newTable("CERTIFICATE", "OF", "MACHINE", "CLASS", "LEVEL", "VERDICT", "CERTIFIED", "MADE", "NOTE")
	for _, c := range list {
		of := cmp.Or(c.ClusterName, string(c.Cluster))
		if c.Node != "" {
			of += "." + c.Node
		}
		note := ""
		switch {
		case c.KeyCompromised:
			note = "signed with a stolen key"
		case c.SupersededBy != "":
			note = "superseded by " + string(c.SupersededBy)
		case c.Past:
			note = "of machines that were given back"
		case now.After(c.Expires):
			note = "expired on " + c.Expires.Format(time.DateOnly)
		}
		t.row(string(c.ID), of, string(c.Machine), c.Class, string(c.Level), string(c.Verdict), yesNo(c.Certified), stamp(c.Made), note)
	}
	t.write(w)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// certificateOf is what a word means: a certificate's ID, or a cluster, whose
// newest certificate it is, or that of one of its nodes.
func certificateOf(ctx context.Context, k *client.Client, args []string) (muster.CertificateID, error) {
	if id := muster.CertificateID(args[0]); strings.HasPrefix(args[0], "pc-") && len(args) == 1 {
		return id, nil
	}
	q := wire.CertificateQuery{Cluster: args[0], Kind: muster.CertifiesCluster, Page: wire.Page{Limit: 1}}
	what := "cluster " + args[0]
	if len(args) > 1 {
		q.Kind, q.Node = muster.CertifiesNode, args[1]
		what = "node " + args[1] + " of " + args[0]
	}
	list, err := k.Certificates(ctx, q)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		if c, err := k.Cluster(ctx, args[0]); err == nil && len(args) > 1 && !slices.ContainsFunc(c.Nodes, func(n wire.Node) bool { return n.Name == args[1] }) {
			return "", muster.Errorf(muster.ENotFound, "cluster %s has no node %q", args[0], args[1]).Because(muster.ReasonNoSuchNode).WithHint("see 'muster show %s'", args[0])
		}
		return "", muster.Errorf(muster.ENotFound, "%s has no certificate", what).Because(muster.ReasonNoSuchCertificate).WithHint("measure it: muster certificate run %s", args[0])
	}
	return list[0].ID, nil
}

// completeCertificate completes a cluster or the ID of a certificate.
func (a *app) completeCertificate(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || !strings.HasPrefix(typed, "p") {
		return a.completeNodes(c, args, typed)
	}
	return a.completion(c, func(ctx context.Context, k *client.Client) []string {
		clusters, _ := k.Clusters(ctx, client.ClusterFilter{})
		list, _ := k.Certificates(ctx, wire.CertificateQuery{Present: true, Page: wire.Page{Limit: 100}})
		var names []string
		for _, c := range clusters {
			names = append(names, c.Name)
		}
		for _, c := range list {
			names = append(names, string(c.ID))
		}
		return names
	}, typed)
}

// oneCertificate wants a certificate, or a cluster and perhaps a node.
func oneCertificate(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usage(c, "CLUSTER is missing")
	case len(args) == 2 && strings.HasPrefix(args[0], "pc-"):
		return usage(c, "%q is one argument too many", args[1])
	}
	return atMost(2)(c, args)
}

func (a *app) certificateShow() *cobra.Command {
	return &cobra.Command{
		Use: "show CERTIFICATE|CLUSTER [NODE]", Short: "Show a certificate", Args: oneCertificate, ValidArgsFunction: a.completeCertificate,
		Long: `Shows a certificate: the newest of a cluster, of one of its nodes, or the one with the
given ID. Each result comes with its interval, extremes, references and the smallest
loss that would have been detected. With -o json it prints the envelope; to hand out a
certificate, export it.`,
		Example: `  muster certificate show cfd
  muster certificate show cfd n02
  muster certificate show pc-2345678bcd -o json`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			id, err := certificateOf(c.Context(), k, args)
			if err != nil {
				return err
			}
			body, err := k.Certificate(c.Context(), id)
			if err != nil {
				return err
			}
			s, err := certificate.Read(body)
			if err != nil {
				return err
			}
			keys, err := k.SigningKeys(c.Context())
			if err != nil {
				return err
			}
			stolen := slices.ContainsFunc(keys.Keys, func(k muster.SigningKey) bool { return k.ID == s.Key && !k.Compromised.IsZero() })
			return a.print(json.RawMessage(body), func(w io.Writer) {
				writeCertificate(w, s.Certificate, stolen, time.Now())
				writeUse(w, s.Certificate.Use, !a.utf8())
			})
		},
	}
}

// writeCertificate writes a certificate for people. stolen: others may have the key that
// signed it.
func writeCertificate(w io.Writer, c muster.Certificate, stolen bool, now time.Time) {
	of := "cluster " + cmp.Or(c.ClusterName, string(c.Cluster))
	if c.Kind == muster.CertifiesNode {
		of = fmt.Sprintf("node %s of %s, on %s", c.Node, cmp.Or(c.ClusterName, string(c.Cluster)), c.Machine)
	}
	certified := yesNo(c.Certified)
	for i, v := range c.Caveats {
		certified += map[bool]string{true: ": ", false: "; "}[i == 0] + v.Text
	}
	valid := "until " + stamp(c.Expires)
	if now.After(c.Expires) {
		valid = "not any more, since " + stamp(c.Expires)
	}
	if stolen {
		valid = "no: the key that signed it was stolen; measure again: muster certificate run " + cmp.Or(c.ClusterName, string(c.Cluster))
	}
	k := c.Conditions
	cores := ""
	if k.Cores > 0 {
		cores = fmt.Sprintf("%s, %s", plaintext.Count(k.Cores, "core"), plaintext.Count(k.Threads, "thread"))
	}
	measured := ""
	if s := c.Schedule; s != nil && !c.Began.IsZero() {
		measured = fmt.Sprintf("%s, from %s on, %s in %s", c.Level, stamp(c.Began), plaintext.Count(s.Launches, "launch"), age(c.Ended.Sub(c.Began)))
	}
	fields(w, "certificate", string(c.ID), "of", of, "verdict", string(c.Verdict), "certified", certified, "made", stamp(c.Made), "valid", valid,
		"measured", measured, "trigger", c.Trigger, "class", c.Class, "processor", k.Processor, "cores", cores, "kernel", k.Kernel, "image", string(c.Image),
		"blas", blasOf(k), "mpi", k.MPI, "transport", k.Transport, "pinning", k.Pinning)
	writeMetrics(w, "", slices.DeleteFunc(slices.Clone(c.Metrics), func(m muster.Metric) bool { return mixOf(m.Name) != "" }))
	indices := c.Indices
	if len(indices) == 0 && c.Kind == muster.CertifiesNode { // older ones have them implied
		indices = muster.Indices(c.Metrics)
	}
	writeMetrics(w, "Indices: the geometric mean of each family on one core\n", indices)
	writeMixes(w, c.Metrics)
	if p := c.Pairs; p != nil {
		writeMetrics(w, fmt.Sprintf("Between nodes: %d of %d pairs\n", p.Measured, p.Possible), p.Metrics)
	}
	writeSweeps(w, c.Sweeps)
	if len(c.Nodes) > 0 {
		fmt.Fprintln(w)
		t := newTable("NODE", "MACHINE", "CERTIFICATE", "VERDICT", "CERTIFIED")
		for _, n := range c.Nodes {
			t.row(n.Node, string(n.Machine), string(n.Certificate), string(n.Verdict), yesNo(n.Certified))
		}
		t.write(w)
	}
	for _, f := range c.Findings {
		sure := ""
		if f.Confirmed {
			sure = ", confirmed"
		}
		cause := ""
		if f.Cause != "" {
			cause = ": " + f.Cause
		}
		fmt.Fprintf(w, "\n%s%s: %s%s\n", clean(f.Code), sure, clean(f.Text), clean(cause))
	}
	for _, o := range c.Omitted {
		fmt.Fprintf(w, "\nnot measured: %s: %s\n", clean(o.What), clean(o.Text))
	}
}

func blasOf(k muster.TestEnvironment) string {
	if k.BLAS == nil {
		return ""
	}
	return strings.TrimSpace(k.BLAS.File + " " + k.BLAS.Config)
}

func writeMetrics(w io.Writer, title string, list []muster.Metric) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s", title)
	t := newTable("METRIC", "MEDIAN", "INTERVAL", "MIN", "MAX", "SHOULD BE", "SEES", "VERDICT")
	for _, m := range list {
		interval, should, sees := "", "", ""
		if v := m.Interval; v != nil {
			interval = amounts(v.Low, v.High, m.Unit)
		}
		if r := m.Reference; r != nil {
			should = amount(r.Value, m.Unit) + " (" + string(r.Source) + ")"
		}
		if m.Detectable != nil {
			sees = fmt.Sprintf("%.1f %%", 100**m.Detectable)
		}
		t.row(metricName(wire.MetricKey{Name: m.Name, Size: m.Size, Threads: m.Threads, Distance: m.Distance}),
			amount(m.Median, m.Unit), interval, amount(m.Min, m.Unit), amount(m.Max, m.Unit), should, sees, string(m.Verdict))
	}
	t.write(w)
}

func (a *app) certificateExport() *cobra.Command {
	var to string
	var replace bool
	c := &cobra.Command{
		Use: "export CERTIFICATE|CLUSTER [NODE]", Short: "Export certificates as they were signed", Args: oneCertificate, ValidArgsFunction: a.completeCertificate,
		Long: `Exports certificates byte for byte as they were signed: a cluster's with those of all
its nodes, which are needed to verify it. --to DIR writes one file per certificate,
--to FILE all of them to one file, one per line. Existing files are kept unless you give
--replace. 'muster certificate verify' accepts both, without a server.`,
		Example: `  muster certificate export cfd --to cfd/
  muster certificate export cfd --to cfd.json
  muster certificate export pc-2345678bcd > old.json
  muster certificate verify cfd/ --key muster.pub`,
		RunE: func(c *cobra.Command, args []string) error {
			if a.output == "yaml" {
				return muster.Errorf(muster.EInvalid, "certificates are signed as JSON").Because(muster.ReasonUnknownFormat).WithHint("leave -o yaml away, or see 'muster certificate show'")
			}
			if err := a.checkOutput(); err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := exported(c.Context(), k, args)
			if err != nil {
				return err
			}
			return a.writeExport(list, to, replace)
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "overwrite existing files")
	c.Flags().StringVar(&to, "to", "", "file to write, or a directory: an existing one, or a name that ends in / (default: standard output)")
	return c
}

// export is a certificate and the name of its file.
type export struct {
	name string
	body []byte
}

// exported fetches a certificate, and those that it names.
func exported(ctx context.Context, k *client.Client, args []string) ([]export, error) {
	id, err := certificateOf(ctx, k, args)
	if err != nil {
		return nil, err
	}
	body, err := k.Certificate(ctx, id)
	if err != nil {
		return nil, err
	}
	s, err := certificate.Read(body)
	if err != nil {
		return nil, err
	}
	list := []export{{exportName(s.Certificate), body}}
	for _, n := range s.Certificate.Nodes {
		body, err := k.Certificate(ctx, n.Certificate)
		if err != nil {
			return nil, err
		}
		of, err := certificate.Read(body)
		if err != nil {
			return nil, err
		}
		list = append(list, export{exportName(of.Certificate), body})
	}
	return list, nil
}

// exportName is a name for the file of a certificate. A server that means ill
// chooses no path.
func exportName(c muster.Certificate) string {
	if c.Kind == muster.CertifiesCluster {
		return "cluster.json"
	}
	if plain, _ := regexp.MatchString(`^[A-Za-z0-9][A-Za-z0-9-]{0,62}$`, c.Node); plain && c.Node != "cluster" {
		return c.Node + ".json"
	}
	return string(c.ID) + ".json"
}

// free reports whether a file may be written: nothing else is there.
func free(path string, body []byte, replace bool) error {
	// What cannot be read will tell why it cannot be written.
	if have, err := os.ReadFile(path); replace || err != nil || bytes.Equal(have, body) {
		return nil //nolint:nilerr // see above
	}
	return muster.Errorf(muster.EConflict, "there is another %s already", clean(path)).Because(muster.ReasonFileExists).WithHint("use another --to, or --replace to overwrite it")
}

func (a *app) writeExport(list []export, to string, replace bool) error {
	cannot := func(err error) error {
		return muster.Errorf(muster.EInvalid, "cannot write %s", to).Because(muster.ReasonFileUnwritable).WithHint("give --to a file or a directory in which you may write").Wrap(err)
	}
	info, err := os.Stat(to)
	if to != "" && (strings.HasSuffix(to, "/") || err == nil && info.IsDir()) {
		if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // certificates are for everybody
			return cannot(err)
		}
		for i := range list {
			list[i].body = append(list[i].body, '\n')
			if err := free(filepath.Join(to, list[i].name), list[i].body, replace); err != nil {
				return err
			}
		}
		for _, e := range list {
			if err := os.WriteFile(filepath.Join(to, e.name), e.body, 0o644); err != nil { //nolint:gosec // the same
				return cannot(err)
			}
		}
		fmt.Fprintf(a.env.Err, "%s written to %s\n", plaintext.Count(len(list), "certificate"), clean(to))
		return nil
	}
	var all []byte
	for _, e := range list {
		all = append(append(all, e.body...), '\n')
	}
	if to == "" {
		_, err := a.env.Out.Write(all)
		return err
	}
	if err := free(to, all, replace); err != nil {
		return err
	}
	if err := os.WriteFile(to, all, 0o644); err != nil { //nolint:gosec // the same
		return cannot(err)
	}
	fmt.Fprintf(a.env.Err, "%s written to %s\n", plaintext.Count(len(list), "certificate"), clean(to))
	return nil
}
