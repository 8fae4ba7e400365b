package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) certificate() *cobra.Command {
	c := &cobra.Command{
		Use: "certificate", Aliases: []string{"cert"}, Short: "Run, show and verify performance certificates", Args: cobra.ArbitraryArgs, RunE: group,
		Long: `A performance certificate says how fast a cluster and each of its nodes were,
under which conditions, and what follows from it. The server signs it.`,
		Example: `  muster certificate show cfd
  muster certificate export cfd --to cfd/
  muster certificate verify cfd/ --key muster.pub`,
	}
	c.AddCommand(a.certificateRun(), a.certificateList(), a.certificateShow(), a.certificateExport(), a.certificateVerify(), a.certificatePage(), a.certificateKey())
	return c
}

func (a *app) certificateKey() *cobra.Command {
	c := &cobra.Command{
		Use: "key", Short: "Manage the keys that sign certificates", Args: cobra.ArbitraryArgs, RunE: group,
		Long:    "The server signs certificates with a key of its own. Its public half verifies them.",
		Example: `  muster certificate key show > muster.pub`,
	}
	c.AddCommand(a.certificateKeyShow(), a.certificateKeyRotate())
	return c
}

func (a *app) certificateKeyShow() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Print the server's public key", Args: exactly(),
		Long: `Prints the current public key in PEM. With -o json it prints all keys of the server
with their validity periods and which of them were compromised: give that list to
whoever verifies old certificates.`,
		Example: `  muster certificate key show > muster.pub
  muster certificate key show -o json > keys.json`,
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.SigningKeys(c.Context())
			if err != nil {
				return err
			}
			if len(list.Keys) == 0 {
				return muster.Errorf(muster.ENotFound, "this server signs no certificates").Because(muster.ReasonSignsNothing).WithHint("use a newer version of the server")
			}
			text, err := certificate.PEM(list.Keys[len(list.Keys)-1])
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) { fmt.Fprint(w, text) })
		},
	}
}

func (a *app) certificateVerify() *cobra.Command {
	var keys []string
	var at string
	c := &cobra.Command{
		Use: "verify FILE...", Short: "Verify that certificates are genuine and valid",
		Long: `Verifies that certificates were signed by the server, that they are valid now, and that
a cluster's certificate comes with those of all its nodes, unchanged. With --key it
works offline: it needs only the files and the public key of the server that signed
them. Without --key it asks your server for its keys, and whether the certificates have
been superseded.

FILE is one or more certificates, or a directory of .json files; - is standard input. A
key file contains one or more public keys: PEM, base64, or the server's list of keys in
JSON. Only that list says which keys were retired or compromised.

A certificate with the result "low" is valid, too: this verifies authenticity, not
speed. The exit status is 0 if all certificates are valid, otherwise the highest of:
1 altered, 2 not a certificate or a newer version, 3 unknown key or missing node,
4 expired, not yet valid or superseded, 5 signed with a retired or compromised key.`,
		Example: `  muster certificate verify cfd.json --key muster.pub
  muster certificate verify cfd.json n01.json n02.json --key muster.pub --at 2026-03-01
  muster certificate verify cfd/ --key keys.json -o json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "FILE is missing")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			now, err := momentOf(at, time.Now())
			if err != nil {
				return err
			}
			ring, err := a.publicKeys(c.Context(), keys)
			if err != nil {
				return err
			}
			var successors certificate.Successors
			if len(keys) == 0 {
				successors = a.successors(c.Context(), args)
			}
			list, err := a.verifyCertificates(args, ring, successors, now)
			if err != nil {
				return err
			}
			return a.tellChecked(list)
		},
	}
	c.Flags().StringArrayVar(&keys, "key", nil, "file with a server's public key; repeatable (default: your server's keys)")
	c.Flags().StringVar(&at, "at", "", "verify as of this time: 2026-03-01 or 2026-03-01T12:00:00Z (default now)")
	_ = c.RegisterFlagCompletionFunc("at", cobra.NoFileCompletions)
	return c
}

// momentOf reads a time that a person wrote: a day of UTC, or RFC 3339.
func momentOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, muster.Errorf(muster.EInvalid, "--at cannot be %q", text).Because(muster.ReasonBadValue).WithHint("write a day, 2026-03-01, or a time, 2026-03-01T12:00:00Z")
}

// publicKeys reads the files of keys, or asks the server where there are none.
func (a *app) publicKeys(ctx context.Context, files []string) (certificate.Ring, error) {
	var ring certificate.Ring
	if len(files) == 0 {
		k, err := a.connect()
		if err != nil {
			return ring, err
		}
		list, err := k.SigningKeys(ctx)
		var e *muster.Error
		if errors.As(err, &e) && e.Code == muster.EUnavailable {
			return ring, e.WithHint("give --key FILE, the public key of the server that made the certificate, to verify it without a server")
		}
		return certificate.Ring{Keys: list.Keys}, err
	}
	for _, file := range files {
		data, err := a.readUpTo(file, certificate.MaxKeys, "the server's public key")
		if err != nil {
			return ring, err
		}
		some, err := certificate.ParseKeys(data)
		if err != nil {
			var e *muster.Error
			if errors.As(err, &e) {
				return ring, inFile(file, e)
			}
			return ring, err
		}
		ring = ring.Join(some)
	}
	return ring, nil
}

// fileEnvelope is a certificate in a file.
type fileEnvelope struct {
	file  string
	place string // the file, and which of it where there are several
	text  []byte
	err   error // why there is none
}

// envelopes are the certificates in files, in their order. What is no certificate is
// among them; the error is of files that cannot be read.
func (a *app) envelopes(names []string) ([]fileEnvelope, error) {
	var list []fileEnvelope
	for _, name := range names {
		files, err := certificateFiles(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := a.readUpTo(file, certificate.MaxBundle, "a certificate")
			if err != nil {
				return nil, err
			}
			split, err := certificate.Split(data)
			if err != nil {
				list = append(list, fileEnvelope{file: file, place: file, err: err})
			}
			for i, e := range split {
				place := file
				if len(split) > 1 {
					place = fmt.Sprintf("%s, certificate %d", file, i+1)
				}
				list = append(list, fileEnvelope{file: file, place: place, text: e})
			}
		}
	}
	return list, nil
}

// successors are what the server knows to have taken the place of others of the
// clusters that these certificates are of. It knows nothing of those of another server.
func (a *app) successors(ctx context.Context, names []string) certificate.Successors {
	read, err := a.envelopes(names)
	k, err2 := a.connect()
	if err != nil || err2 != nil || slices.Contains(names, "-") { // standard input is read once
		return nil
	}
	out, asked := certificate.Successors{}, map[muster.ClusterID]bool{}
	for _, e := range read {
		s, err := certificate.Read(e.text)
		if c := s.Certificate.Cluster; err == nil && !asked[c] {
			asked[c] = true
			rows, _ := k.Certificates(ctx, wire.CertificateQuery{Cluster: string(c)})
			for _, row := range rows {
				if row.SupersededBy != "" {
					out[row.ID] = row.SupersededBy
				}
			}
		}
	}
	return out
}

// verifyCertificates verifies all certificates of all files together.
func (a *app) verifyCertificates(names []string, ring certificate.Ring, successors certificate.Successors, now time.Time) ([]wire.CertificateChecked, error) {
	read, err := a.envelopes(names)
	if err != nil {
		return nil, err
	}
	list := make([]wire.CertificateChecked, len(read))
	var texts [][]byte
	var at []int // of each text in the list
	take := func(i int, r certificate.Result) {
		list[i] = checked(read[i].file, r)
		if e := list[i].Error; e != nil {
			list[i].Error = inFile(read[i].place, e)
		}
	}
	for i, e := range read {
		if e.err != nil {
			take(i, certificate.Result{Err: e.err})
			continue
		}
		texts, at = append(texts, e.text), append(at, i)
	}
	for i, r := range certificate.VerifyAll(texts, ring, now, successors) {
		take(at[i], r)
	}
	return list, nil
}

// certificateFiles are the files that a name stands for.
func certificateFiles(name string) ([]string, error) {
	isDir := false
	if info, err := os.Stat(name); err == nil && name != "-" {
		isDir = info.IsDir()
	}
	if !isDir {
		return []string{name}, nil // if there is none, reading it tells
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, cannotRead(name, "a directory of certificates", err)
	}
	var files []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".json" && !e.IsDir() {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, muster.Errorf(muster.EInvalid, "%s has no file that ends in .json", name).Because(muster.ReasonFileUnreadable).WithHint("give a directory of certificates")
	}
	return files, nil
}

// inFile puts the name of a file before what is wrong with it.
func inFile(file string, e *muster.Error) *muster.Error {
	named := *e
	named.Message = file + ": " + e.Message
	return &named
}

func checked(file string, r certificate.Result) wire.CertificateChecked {
	c := r.Certificate
	out := wire.CertificateChecked{
		File: file, OK: r.Err == nil, ID: c.ID, Kind: c.Kind, Cluster: c.Cluster, ClusterName: c.ClusterName, Node: c.Node, Machine: c.Machine,
		Level: c.Level, Verdict: c.Verdict, Certified: c.Certified, Caveats: c.Caveats, Made: c.Made, Expires: c.Expires, Digest: r.Digest, Key: r.Key,
	}
	var f *certificate.Failure
	switch {
	case errors.As(r.Err, &f):
		out.Reason, out.Error = string(f.Reason), f.Err
	case r.Err != nil:
		out.Reason, out.Error = "defect", muster.Errorf(muster.EInternal, "%v", r.Err)
	}
	return out
}

// tellChecked writes what became of certificates, and why those failed that did.
func (a *app) tellChecked(list []wire.CertificateChecked) error {
	if err := a.print(list, func(w io.Writer) { writeChecked(w, list) }); err != nil {
		return err
	}
	status := exitOK
	for _, c := range list {
		if !c.OK {
			a.report(c.Error)
			status = max(status, ExitCode(c.Error))
		}
	}
	if status != exitOK {
		return &StatusError{Status: status}
	}
	return nil
}

func writeChecked(w io.Writer, list []wire.CertificateChecked) {
	t := newTable("FILE", "CERTIFICATE", "OF", "CHECK", "VERDICT", "CERTIFIED", "EXPIRES")
	for _, c := range list {
		of, certified := "", ""
		switch c.Kind {
		case muster.CertifiesNode:
			of = "node " + c.Node + " of " + cmp.Or(c.ClusterName, string(c.Cluster))
		case muster.CertifiesCluster:
			of = "cluster " + cmp.Or(c.ClusterName, string(c.Cluster))
		}
		if c.ID != "" {
			certified = "yes"
			if !c.Certified {
				certified = "no"
				for i, v := range c.Caveats {
					certified += map[bool]string{true: ": ", false: ", "}[i == 0] + v.Code
				}
			}
		}
		t.row(c.File, string(c.ID), of, cmp.Or(c.Reason, "valid"), string(c.Verdict), certified, stamp(c.Expires))
	}
	t.write(w)
}
