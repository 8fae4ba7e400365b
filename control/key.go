package control

import (
	"context"
	"crypto/rsa"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"
)

const (
	maxKeys    = 64
	maxKeyTime = 10 * 366 * 24 * time.Hour
	maxPurpose = 100
	minRSABits = 3072
)

// Keys lists a person's keys with their terms and last use: one's own, or anybody's for
// administrators.
func (s *Service) Keys(ctx context.Context, who muster.Actor, name string, p wire.Page) (wire.KeyList, error) {
	out := wire.KeyList{Keys: []muster.SSHKey{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		u, err := findUser(tx, name)
		if err != nil {
			return err
		}
		if err := ownKeys(who, name); err != nil {
			return err
		}
		terms, err := tx.KeyTerms(name)
		if err != nil {
			return err
		}
		list := make([]muster.SSHKey, 0, len(u.Keys))
		for _, line := range u.Keys {
			if k, ok := keyOf(line); ok {
				t := terms[k.Fingerprint]
				t.Fingerprint, t.Type, t.Comment, t.Key = k.Fingerprint, k.Type, k.Comment, k.Key
				list = append(list, t)
			}
		}
		slices.SortFunc(list, func(a, b muster.SSHKey) int { return strings.Compare(a.Fingerprint, b.Fingerprint) })
		list, out.More = wire.Cut(list, p, func(k muster.SSHKey) string { return k.Fingerprint })
		out.Keys = append(out.Keys, list...)
		return nil
	})
	return out, err
}

func ownKeys(who muster.Actor, name string) error {
	if !who.Admin && who.Name != name {
		return muster.Errorf(muster.EForbidden, "you may see and change your own keys only").Because(muster.ReasonYourselfOnly).WithHint("leave --user away")
	}
	return nil
}

// keyOf reads a line of a user's record.
func keyOf(line string) (muster.SSHKey, bool) {
	pub, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return muster.SSHKey{}, false
	}
	return muster.SSHKey{Fingerprint: ssh.FingerprintSHA256(pub), Type: pub.Type(), Comment: comment, Key: line}, true
}

// AddKey adds a public key to a person: oneself, or anybody for administrators. One that is
// there gets the terms that are given now and keeps the others.
func (s *Service) AddKey(ctx context.Context, who muster.Actor, name string, r wire.KeyRequest) (wire.KeysChanged, error) {
	var wrong []muster.Problem
	line, err := cleanKey(r.Key)
	if err != nil {
		wrong = append(wrong, err.In("key"))
	}
	terms := muster.SSHKey{Purpose: cleantext.Line(r.Purpose), Added: s.Clock.Now()}
	if len(terms.Purpose) > maxPurpose {
		wrong = append(wrong, muster.Problem{Field: "purpose", Reason: muster.ReasonTooLarge, Message: "the purpose is too long", Hint: "use at most 100 characters"})
	}
	if r.TTL != "" {
		d, err := duration.Parse(r.TTL)
		if err != nil || d <= 0 || d > maxKeyTime {
			wrong = append(wrong, muster.Problem{Field: "ttl", Reason: muster.ReasonBadValue, Message: "this is not how long a key lives",
				Hint: "write 12h, 30d or 52w, at most ten years; leave it away for a key without an end"})
		}
		terms.Expires = terms.Added.Add(d).Truncate(time.Second)
	}
	if len(wrong) > 0 {
		return wire.KeysChanged{}, muster.Errorf(muster.EInvalid, "the key cannot be added").Listing(wrong)
	}
	return s.changeKeys(ctx, who, name, func(tx *store.Tx, u *muster.User) error {
		u.Keys = appendKey(u.Keys, line)
		if len(u.Keys) > maxKeys {
			return tooManyKeys()
		}
		k, _ := keyOf(line)
		old, err := tx.KeyTermsOf(name, k.Fingerprint)
		if err != nil {
			return err
		}
		if r.TTL == "" && old.Expired(terms.Added) {
			return muster.Errorf(muster.EConflict, "this key ended on %s", old.Expires.UTC().Format(time.DateOnly)).Because(muster.ReasonWrongPhase).
				WithHint("give it a new end with --ttl, or remove it first: muster key remove %s", k.Fingerprint)
		}
		if r.TTL == "" {
			terms.Expires = old.Expires
		}
		if r.Purpose == "" {
			terms.Purpose = old.Purpose
		}
		terms.Fingerprint = k.Fingerprint
		return tx.PutKeyTerms(name, terms)
	})
}

// RemoveKey removes a key, by fingerprint or comment.
func (s *Service) RemoveKey(ctx context.Context, who muster.Actor, name, key string) (wire.KeysChanged, error) {
	return s.changeKeys(ctx, who, name, func(tx *store.Tx, u *muster.User) error {
		var kept []string
		for _, line := range u.Keys {
			k, ok := keyOf(line)
			if line != key && (!ok || k.Fingerprint != key && k.Comment != key) {
				kept = append(kept, line)
				continue
			}
			if err := tx.DropKeyTerms(name, k.Fingerprint); err != nil {
				return err
			}
		}
		if len(kept) == len(u.Keys) {
			return muster.Errorf(muster.ENotFound, "%s has no such key", name).Because(muster.ReasonNoSuchKey).
				WithHint("see 'muster key list --user %s' for fingerprints and comments", name)
		}
		u.Keys = kept
		return nil
	})
}

// changeKeys changes the keys of a person, and waits until they are in force on all nodes
// of that person's clusters, or reports where they are not.
func (s *Service) changeKeys(ctx context.Context, who muster.Actor, name string, change func(*store.Tx, *muster.User) error) (wire.KeysChanged, error) {
	var out wire.KeysChanged
	var clusters []muster.Cluster
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		u, err := findUser(tx, name)
		if err != nil {
			return err
		}
		if err := ownKeys(who, name); err != nil {
			return err
		}
		if err := change(tx, &u); err != nil {
			return err
		}
		out.User = u
		if err := tx.PutUser(u, "keys changed"); err != nil {
			return err
		}
		clusters, err = tx.Clusters(store.ClusterFilter{Living: true})
		return err
	})
	if err != nil {
		return out, err
	}
	clusters = slices.DeleteFunc(clusters, func(c muster.Cluster) bool { return !slices.Contains(c.Spec.Users, name) })
	pending := make([]*wire.Applied, len(clusters))
	var all errgroup.Group
	all.SetLimit(16)
	for i, c := range clusters {
		all.Go(func() error { pending[i] = s.awaitApplied(ctx, c.ID); return nil })
	}
	_ = all.Wait()
	for i, a := range pending {
		if a != nil && a.On < a.Nodes {
			out.Pending = append(out.Pending, wire.PendingCluster{Cluster: clusters[i].Name, Applied: *a})
		}
	}
	return out, nil
}

func tooManyKeys() *muster.Error {
	return muster.Errorf(muster.EInvalid, "a user has at most %d keys", maxKeys).Because(muster.ReasonTooMany).WithHint("remove one with 'muster key remove'")
}

// cleanKey checks one authorized_keys line and gives its plain form. Options
// are refused: they would run commands on the nodes.
func cleanKey(line string) (string, *muster.Error) {
	bad := muster.Errorf(muster.EInvalid, "this is not one public SSH key").Because(muster.ReasonBadSSHKey).
		WithHint("give one line of a .pub file: 'ssh-ed25519 AAAA... name'")
	if len(line) > 16<<10 {
		return "", bad
	}
	if strings.Contains(line, "PRIVATE KEY") {
		return "", muster.Errorf(muster.EInvalid, "this is a private key").Because(muster.ReasonPrivateKey).WithHint("give the file that ends in .pub, and make a new key: others may have seen this one")
	}
	key, comment, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil || len(strings.TrimSpace(string(rest))) > 0 {
		return "", bad
	}
	if len(options) > 0 {
		return "", bad.WithHint("leave out what stands before 'ssh-'")
	}
	if e := checkKey(key); e != nil {
		return "", e
	}
	text := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	comment = cleantext.Line(comment)
	if comment != "" {
		text += " " + comment
	}
	return text, nil
}

// checkKey refuses certificates and what is too weak.
func checkKey(key ssh.PublicKey) *muster.Error {
	const cure = "make another one: ssh-keygen -t ed25519"
	refuse := func(format string, args ...any) *muster.Error {
		return muster.Errorf(muster.EInvalid, format, args...).Because(muster.ReasonBadSSHKey).WithHint(cure)
	}
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		return nil
	case ssh.KeyAlgoRSA:
		if c, ok := key.(ssh.CryptoPublicKey); ok {
			if r, ok := c.CryptoPublicKey().(*rsa.PublicKey); ok && r.N.BitLen() >= minRSABits {
				return nil
			} else if ok {
				return refuse("an RSA key of %d bits is too weak; %d are needed", r.N.BitLen(), minRSABits)
			}
		}
	}
	if _, ok := key.(*ssh.Certificate); ok {
		return refuse("this is a certificate, not a key: %s", key.Type())
	}
	return refuse("keys of type %s are not taken; use Ed25519, ECDSA, RSA of %d bits or more, or a FIDO2 key", key.Type(), minRSABits)
}

// appendKey adds a key that is not there yet; comments do not count.
func appendKey(keys []string, key string) []string {
	body := func(line string) string {
		f := strings.Fields(line)
		return strings.Join(f[:min(2, len(f))], " ")
	}
	for _, k := range keys {
		if body(k) == body(key) {
			return keys
		}
	}
	return append(slices.Clone(keys), key)
}
