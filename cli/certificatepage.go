package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
	"github.com/muster-hpc/muster/certificate/page"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// pageFlags are what certificate page is asked for.
type pageFlags struct {
	to, node, at string
	keys         []string
	unverified   bool
}

func (a *app) certificatePage() *cobra.Command {
	var f pageFlags
	c := &cobra.Command{
		Use: "page FILE...", Short: "Write a certificate as an HTML page",
		Long: `Writes a certificate as one self-contained HTML file: results, heat maps of pairs,
curves, a comparison of the nodes, and what each number means. It uses no scripts and
loads nothing, so it works offline and in print.

FILE is the same as for 'muster certificate verify': a cluster's certificate with those
of its nodes, or one node's. They are verified first, with --key or your server's keys,
and the page says so; with --no-verify it says that they were not verified.

Without --to the page is written to the current directory, named after the
certificate's ID; - is standard output.`,
		Example: `  muster certificate page cfd/ --key muster.pub
  muster certificate page cfd.json --key muster.pub --to cfd.html
  muster certificate page cfd.json --key muster.pub --node n05
  muster certificate page n05.json --no-verify --to - | less`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "FILE is missing")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.runPage(c, args, f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.to, "to", "", "write the page to this file (default ID.html)")
	flags.StringVar(&f.node, "node", "", "only this node")
	flags.StringArrayVar(&f.keys, "key", nil, "file with a server's public key; repeatable (default: your server's keys)")
	flags.StringVar(&f.at, "at", "", "verify as of this time: 2026-03-01 or 2026-03-01T12:00:00Z (default now)")
	flags.BoolVar(&f.unverified, "no-verify", false, "do not verify signatures; the page says so")
	_ = c.MarkFlagFilename("to", "html")
	_ = c.RegisterFlagCompletionFunc("at", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("node", cobra.NoFileCompletions)
	return c
}

func (a *app) runPage(c *cobra.Command, args []string, f pageFlags) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	if f.to == "-" && a.output != "" {
		return usage(c, "the page and -o %s cannot both be written to the standard output", a.output)
	}
	if f.unverified && (len(f.keys) > 0 || f.at != "") {
		return usage(c, "--no-verify looks at no signature: leave it out, or --key and --at")
	}
	now, err := momentOf(f.at, time.Now())
	if err != nil {
		return err
	}
	list, err := a.believed(c, args, f, now)
	if err != nil {
		return err
	}
	what, nodes, err := subjectOf(list, f.node)
	if err != nil {
		return err
	}
	more := page.More{Digest: what.Digest, Key: what.Key}
	if !f.unverified {
		more.Verified = now
	}
	var html bytes.Buffer
	if err := page.Write(&html, what.Certificate, nodes, more); err != nil {
		return muster.Errorf(muster.EInternal, "the page cannot be written: %v", err).Wrap(err)
	}
	if f.to == "-" {
		_, err := a.env.Out.Write(html.Bytes())
		return err
	}
	cert := what.Certificate
	out := wire.CertificatePage{
		File: cmp.Or(f.to, string(cert.ID)+".html"), Bytes: html.Len(), Verified: !f.unverified, ID: cert.ID, Kind: cert.Kind, Cluster: cert.Cluster,
		ClusterName: cert.ClusterName, Node: cert.Node, Verdict: cert.Verdict, Certified: cert.Certified, Digest: what.Digest, Key: what.Key,
	}
	if err := writePage(out.File, html.Bytes(), args); err != nil {
		return err
	}
	return a.print(out, func(w io.Writer) {
		of := "cluster " + cmp.Or(out.ClusterName, string(out.Cluster))
		if out.Node != "" {
			of = "node " + out.Node + " of " + of
		}
		fmt.Fprintf(w, "%s has the page of %s (%s), %s\n", clean(out.File), clean(of), out.ID, map[bool]string{true: "verified", false: "not verified"}[out.Verified])
	})
}

// believed reads certificates and verifies them, unless nobody wants that.
func (a *app) believed(c *cobra.Command, names []string, f pageFlags, now time.Time) ([]certificate.Result, error) {
	read, err := a.envelopes(names)
	if err != nil {
		return nil, err
	}
	var texts [][]byte
	for _, e := range read {
		var failure *certificate.Failure
		switch {
		case errors.As(e.err, &failure):
			return nil, inFile(e.file, failure.Err)
		case e.err != nil:
			return nil, e.err
		}
		texts = append(texts, e.text)
	}
	var list []certificate.Result
	if f.unverified {
		for _, e := range texts {
			s, err := certificate.Read(e)
			list = append(list, certificate.Result{Signed: s, Err: err})
		}
	} else {
		ring, err := a.publicKeys(c.Context(), f.keys)
		if err != nil {
			return nil, err
		}
		list = certificate.VerifyAll(texts, ring, now, nil)
	}
	status := exitOK
	for i, r := range list {
		if failed := checked(read[i].place, r); failed.Error != nil {
			a.report(inFile(read[i].place, failed.Error))
			status = max(status, ExitCode(failed.Error))
		}
	}
	if status != exitOK {
		return nil, &StatusError{Status: status}
	}
	return list, nil
}

// subjectOf is the certificate that a page is asked of, with those of its nodes.
func subjectOf(list []certificate.Result, node string) (certificate.Signed, []muster.Certificate, error) {
	var clusters, wanted []certificate.Signed
	var nodes []muster.Certificate
	seen := map[muster.Digest]bool{}
	for _, r := range list {
		if seen[r.Digest] {
			continue // given twice
		}
		seen[r.Digest] = true
		if r.Certificate.Kind == muster.CertifiesCluster {
			clusters = append(clusters, r.Signed)
			continue
		}
		nodes = append(nodes, r.Certificate)
		if node == "" || r.Certificate.Node == node {
			wanted = append(wanted, r.Signed)
		}
	}
	switch {
	case node != "" && len(wanted) == 0:
		return certificate.Signed{}, nil, muster.Errorf(muster.ENotFound, "there is no certificate of a node %q among these", node).Because(muster.ReasonNoSuchCertificate).WithHint("%s", nodesThere(nodes))
	case node == "" && len(clusters) > 1:
		return certificate.Signed{}, nil, muster.Errorf(muster.EInvalid, "these are certificates of %d clusters", len(clusters)).WithHint("give those of one")
	case node == "" && len(clusters) == 1:
		return clusters[0], nodes, nil
	case len(wanted) > 1:
		return certificate.Signed{}, nil, muster.Errorf(muster.EInvalid, "these are %d certificates of nodes, and none of a cluster", len(wanted)).Because(muster.ReasonAmbiguous).
			WithHint("give the cluster's, too, or one node's; with --node NODE only that one's is shown")
	}
	return wanted[0], nil, nil
}

// nodesThere says which nodes there are.
func nodesThere(nodes []muster.Certificate) string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Node)
	}
	if len(names) == 0 {
		return "give the certificates of the nodes, too"
	}
	return "there are " + strings.Join(names[:min(len(names), 8)], ", ")
}

// writePage writes a file, and never over a certificate that it came from.
func writePage(name string, html []byte, from []string) error {
	if to, err := os.Stat(name); err == nil {
		for _, f := range from {
			if is, err := os.Stat(f); err == nil && os.SameFile(to, is) {
				return muster.Errorf(muster.EInvalid, "%s is the certificate itself", name).Because(muster.ReasonFileUnwritable).WithHint("give --to another file")
			}
		}
	}
	if err := os.WriteFile(name, html, 0o644); err != nil {
		return muster.Errorf(muster.EInvalid, "cannot write %s", name).Because(muster.ReasonFileUnwritable).WithHint("give --to a file that can be written").Wrap(err)
	}
	return nil
}
