package control

import (
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// subject is something of which there are figures.
type subject struct {
	name string // as it was asked for
	kind string // cluster, machine, class, certificate

	cluster muster.Cluster
	machine muster.MachineID
	class   string
	// certificate is the one that was named.
	certificate store.Certificate
}

// What a subject can be.
const (
	ofCluster     = "cluster"
	ofMachine     = "machine"
	ofClass       = "class"
	ofCertificate = "certificate"
)

// subject finds what somebody means: a certificate by its ID, or a cluster, a
// machine or a class, in that order. cluster:NAME, machine:ID and class:NAME say
// which.
func (s *Service) subject(tx *store.Tx, ref string) (subject, error) {
	out := subject{name: ref}
	kind, name, said := strings.Cut(ref, ":")
	if !said || !slices.Contains([]string{ofCluster, ofMachine, ofClass}, kind) {
		kind, name = "", ref
	}
	if kind == "" && strings.HasPrefix(name, "pc-") {
		c, err := tx.Certificate(muster.CertificateID(name))
		out.kind, out.certificate = ofCertificate, c
		return out, err
	}
	var unknown error
	if kind == "" || kind == ofCluster {
		c, err := tx.FindCluster(name)
		if err == nil || muster.CodeOf(err) != muster.ENotFound || kind != "" {
			out.kind, out.cluster = ofCluster, c
			return out, err
		}
		unknown = err
	}
	if kind == "" || kind == ofMachine {
		m, err := tx.Machine(muster.MachineID(name))
		if kind != "" && muster.CodeOf(err) == muster.ENotFound {
			err = s.unknownMachine(tx, muster.MachineID(name))
		}
		if err == nil || muster.CodeOf(err) != muster.ENotFound || kind != "" {
			out.kind, out.machine = ofMachine, m.ID
			return out, err
		}
	}
	machines, err := tx.Machines(store.MachineFilter{Class: name, Limit: 1})
	if err != nil {
		return out, err
	}
	certs, err := tx.Certificates(store.CertificateFilter{Class: name, Limit: 1})
	if err != nil {
		return out, err
	}
	if len(machines)+len(certs) > 0 && name != "" {
		out.kind, out.class = ofClass, name
		return out, nil
	}
	e := muster.Errorf(muster.ENotFound, "there is no cluster, machine or class %q", name).Because(muster.ReasonNotFound)
	if kind == ofClass {
		e = muster.Errorf(muster.ENotFound, "there is no class %q", name).Because(muster.ReasonNoSuchClass)
	}
	if known := asError(unknown); known != nil && known.Hint != "" && kind == "" {
		return out, e.WithHint("%s", known.Hint)
	}
	return out, e.WithHint("see 'muster list --all' and 'muster machine list --wide'")
}

// unmeasured is the error for a subject of which nothing is known.
func (o subject) unmeasured(since bool) error {
	within := ""
	if since {
		within = " in this time"
	}
	switch o.kind {
	case ofCluster:
		e := muster.Errorf(muster.ENotFound, "cluster %s has no certificate%s", o.cluster.Name, within).Because(muster.ReasonNoSuchCertificate)
		if o.cluster.Phase == muster.ClusterDeleted {
			return e.WithHint("a deleted cluster cannot be measured any more")
		}
		return e.WithHint("measure it: muster certificate run %s", o.cluster.Name)
	case ofMachine:
		return muster.Errorf(muster.ENotFound, "there is no certificate of machine %s%s that you may see", o.machine, within).Because(muster.ReasonNoSuchCertificate).
			WithHint("it is measured in a cluster: muster certificate run CLUSTER")
	}
	return muster.Errorf(muster.ENotFound, "there is no certificate of class %s%s that you may see", o.class, within).Because(muster.ReasonNoSuchCertificate).
		WithHint("its machines are measured in clusters: muster certificate run CLUSTER")
}
