package certificate

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
)

// Skew is how far the clock of who verifies may be behind the server's.
const Skew = 5 * time.Minute

// Successors reports by which certificate another one was superseded.
type Successors map[muster.CertificateID]muster.CertificateID

// Add notes what a certificate supersedes. Give it only what was verified.
func (s Successors) Add(c muster.Certificate) {
	for _, old := range c.Supersedes {
		s[old] = c.ID
	}
}

// Verify reads an envelope and reports whether it is to be believed at a time:
// signed by one of the keys while that was good, not altered, in force, and
// superseded by none of the known successors (nil: none is known). The error is
// a *Failure. Of a manifest it verifies the manifest itself; VerifyAll verifies
// it with its nodes.
func Verify(envelope []byte, keys Ring, now time.Time, known Successors) (Signed, error) {
	s, err := authentic(envelope, keys)
	if err != nil {
		return s, err
	}
	return s, inForce(s.Certificate, now, known)
}

// authentic reports whether one of the keys signed the envelope while it was
// good.
func authentic(envelope []byte, keys Ring) (Signed, error) {
	s, err := open(envelope)
	if err != nil {
		return Signed{}, err
	}
	key, ok := keys.find(s.Key)
	if !ok {
		return Signed{}, fail(UnknownKey, "give the public key of the server that made it; if that server is yours, the certificate was altered or is not its own",
			"it is signed by a key that was not given: %s", clip(s.Key))
	}
	public, err := parseBase64(key.Key)
	if err != nil {
		return Signed{}, fail(UnknownKey, "get the public key again from the server", "%s is not a key", clip(s.Key))
	}
	// Nothing here is secret: signature, key and message are public, so how
	// long it takes tells nothing.
	if !ed25519.Verify(public.raw, message(s.Canonical), s.signature) {
		return Signed{}, fail(Altered, "get the certificate again from where it came: not one value of it can be trusted",
			"the signature does not fit: the certificate was altered after it was signed")
	}
	if !key.Compromised.IsZero() {
		return Signed{}, fail(KeyCompromised, "measure again: whoever has the key can sign anything, with any date",
			"the key %s has been in wrong hands since %s or longer", clip(key.ID), stamp(key.Compromised))
	}
	if err := s.decode(); err != nil {
		return Signed{}, err
	}
	c := s.Certificate
	if !key.Until.IsZero() && c.Made.After(key.Until) {
		return Signed{}, fail(KeyRetired, "a retired key was used: do not trust it, and inform whoever runs the server",
			"%s was made on %s, and its key was retired on %s", title(c), stamp(c.Made), stamp(key.Until))
	}
	if c.Made.Before(key.From.Add(-Skew)) {
		return Signed{}, fail(KeyNotYet, "its date cannot be right: do not trust it, and inform whoever runs the server",
			"%s was made on %s, and its key only on %s", title(c), stamp(c.Made), stamp(key.From))
	}
	return s, nil
}

func inForce(c muster.Certificate, now time.Time, known Successors) error {
	if now.Add(Skew).Before(c.Made) {
		return fail(NotYetValid, "look at the time that was given, or at the clock of this computer", "%s is not valid yet: it was made on %s, and it is %s", title(c), stamp(c.Made), stamp(now))
	}
	if !now.Before(c.Expires) {
		return fail(Expired, "a new measurement gives a new one; what it says was so until then", "%s expired on %s", title(c), stamp(c.Expires))
	}
	if by, ok := known[c.ID]; ok {
		return fail(Superseded, "use the new one", "%s was superseded by %s", title(c), by)
	}
	return nil
}

// Result is what is known of one envelope of several.
type Result struct {
	Signed
	// Err is a *Failure, or nil.
	Err error
}

// VerifyAll verifies envelopes that belong together: none may be superseded by
// another of them, and a manifest is believed only with every certificate that
// it names. The results are in the order of the envelopes.
func VerifyAll(envelopes [][]byte, keys Ring, now time.Time, known Successors) []Result {
	successors := Successors{}
	for old, by := range known {
		successors[old] = by
	}
	out := make([]Result, len(envelopes))
	for i, e := range envelopes {
		if out[i].Signed, out[i].Err = authentic(e, keys); out[i].Err == nil {
			successors.Add(out[i].Certificate)
		}
	}
	byDigest := map[muster.Digest]*Result{}
	for i := range out {
		r := &out[i]
		if r.Err != nil {
			continue
		}
		r.Err = inForce(r.Certificate, now, successors)
		byDigest[r.Digest] = r
	}
	claimed := claims(envelopes)
	for i := range out {
		if r := &out[i]; r.Err == nil && r.Certificate.Kind == muster.CertifiesCluster {
			r.Err = checkNodes(r.Certificate, byDigest, claimed)
		}
	}
	return out
}

// checkNodes compares a manifest with the certificates of its nodes.
func checkNodes(manifest muster.Certificate, byDigest map[muster.Digest]*Result, claimed map[muster.CertificateID]bool) error {
	for _, n := range manifest.Nodes {
		r, ok := byDigest[n.Digest]
		switch {
		case !ok && claimed[n.Certificate]:
			return differs(manifest, n)
		case !ok:
			return fail(NodeMissing, "give the files of all its nodes too, or a bundle or directory that holds them",
				"%s names %s of node %s, which was not given", title(manifest), n.Certificate, n.Node)
		}
		c := r.Certificate
		if c.ID != n.Certificate || c.Node != n.Node || c.Machine != n.Machine || c.Cluster != manifest.Cluster || c.Kind != muster.CertifiesNode {
			return differs(manifest, n)
		}
		if f, ok := r.Err.(*Failure); ok { //nolint:errorlint // made above, and wrapped by nobody
			return fail(f.Reason, f.Err.Hint, "%s stands on another one that fails: %s", title(manifest), f.Err.Message)
		}
	}
	return nil
}

func differs(manifest muster.Certificate, n muster.CertifiedNode) error {
	return fail(NodeDiffers, "get the certificate of that node again from where the manifest came",
		"%s names %s of node %s, and the one that was given is another", title(manifest), n.Certificate, n.Node)
}

// claims are the IDs that envelopes say they have, whoever signed them.
func claims(envelopes [][]byte) map[muster.CertificateID]bool {
	out := map[muster.CertificateID]bool{}
	for _, e := range envelopes {
		var p struct {
			Certificate named `json:"certificate"`
		}
		if json.Unmarshal(e, &p) == nil {
			out[p.Certificate.ID] = true
		}
	}
	return out
}

// title names a certificate for people.
func title(c muster.Certificate) string {
	if c.Kind == muster.CertifiesNode {
		return fmt.Sprintf("certificate %s of node %s", c.ID, c.Node)
	}
	return fmt.Sprintf("certificate %s of cluster %s", c.ID, c.Cluster)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// clip shortens a fingerprint, which may be anything in an altered file.
func clip(id string) string {
	if len(id) > 80 {
		return id[:80] + "..."
	}
	return id
}
