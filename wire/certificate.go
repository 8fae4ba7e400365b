package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// SigningKeys are the public keys by which a server's certificates are
// verified, the present one last.
type SigningKeys struct {
	Keys []muster.SigningKey `json:"keys"`
	More
}

// ChangeKey makes the server sign with a new key.
type ChangeKey struct {
	Compromised string `json:"compromised,omitempty" doc:"Fingerprint of a key that was stolen: nothing that it signed is believed any more; empty: the present key is only put away"`
}

// CertificateChecked is what became of one certificate that was verified.
type CertificateChecked struct {
	File string `json:"file"`
	OK   bool   `json:"ok"`
	// Reason tells programs why it failed: altered, expired, unknown-key, ...
	Reason string        `json:"reason,omitempty"`
	Error  *muster.Error `json:"error,omitempty"`
	// What follows is left out where nobody vouches for it.
	ID          muster.CertificateID   `json:"id,omitempty"`
	Kind        muster.CertificateKind `json:"kind,omitempty"`
	Cluster     muster.ClusterID       `json:"cluster,omitempty"`
	ClusterName string                 `json:"cluster_name,omitempty"`
	Node        string                 `json:"node,omitempty"`
	Machine     muster.MachineID       `json:"machine,omitempty"`
	Level       muster.Validation      `json:"level,omitempty"`
	Verdict     muster.Grade           `json:"verdict,omitempty"`
	Certified   bool                   `json:"certified,omitempty"`
	Caveats     []muster.Caveat        `json:"caveats,omitempty"`
	Made        time.Time              `json:"made,omitzero"`
	Expires     time.Time              `json:"expires,omitzero"`
	Digest      muster.Digest          `json:"digest,omitempty"`
	Key         string                 `json:"key,omitempty"`
}

// CertificatePage is a page that was written of a certificate.
type CertificatePage struct {
	File  string `json:"file"`
	Bytes int    `json:"bytes"`
	// Verified: the signatures were looked at, and were genuine and in force.
	Verified    bool                   `json:"verified"`
	ID          muster.CertificateID   `json:"id"`
	Kind        muster.CertificateKind `json:"kind"`
	Cluster     muster.ClusterID       `json:"cluster"`
	ClusterName string                 `json:"cluster_name,omitempty"`
	Node        string                 `json:"node,omitempty"`
	Verdict     muster.Grade           `json:"verdict"`
	Certified   bool                   `json:"certified"`
	Digest      muster.Digest          `json:"digest"`
	Key         string                 `json:"key"`
}
