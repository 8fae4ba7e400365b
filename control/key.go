package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/sync/errgroup"
)

const (
	maxKeys    = 64
	maxKeyTime = 10 * 366 * 24 * time.Hour
	maxPurpose = 100
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
			if k, ok := pki.UserKey(line); ok {
				list = append(list, k.Under(terms[k.Fingerprint]))
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

// keysOf are a user's keys with their terms.
func keysOf(tx *store.Tx, u muster.User) ([]muster.SSHKey, error) {
	terms, err := tx.AsSystem().KeyTerms(u.Name)
	if err != nil {
		return nil, err
	}
	return keysUnder(u, terms), nil
}

// keysUnder are a user's keys with these terms, by fingerprint.
func keysUnder(u muster.User, terms map[string]muster.SSHKey) []muster.SSHKey {
	var list []muster.SSHKey
	for _, line := range u.Keys {
		if k, ok := pki.UserKey(line); ok {
			list = append(list, k.Under(terms[k.Fingerprint]))
		}
	}
	return list
}

// AddKey adds a public key, an authority of certificates or a certificate to a person: oneself, or anybody for
// administrators. One that is there gets the terms that are given now and keeps the others.
func (s *Service) AddKey(ctx context.Context, who muster.Actor, name string, r wire.KeyRequest) (wire.KeysChanged, error) {
	terms := muster.SSHKey{Purpose: cleantext.Line(r.Purpose), Added: s.Clock.Now()}
	key, wrong := s.newKey(name, r)
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
	return s.changeKeys(ctx, who, name, func(tx *store.Tx, u *muster.User) (err error) {
		old, err := tx.KeyTermsOf(name, key.Fingerprint)
		if err != nil {
			return err
		}
		known := len(u.Keys)
		if u.Keys, err = putKey(u.Keys, key); err != nil {
			return err
		}
		if len(u.Keys) > maxKeys && len(u.Keys) > known {
			return tooManyKeys()
		}
		if r.TTL == "" && !key.IsCertificate() { // a certificate has an end of its own
			if old.Expired(terms.Added) {
				return muster.Errorf(muster.EConflict, "this key ended on %s", old.Expires.UTC().Format(time.DateOnly)).Because(muster.ReasonWrongPhase).
					WithHint("give it a new end with --ttl, or remove it first: muster key remove %s", key.Fingerprint)
			}
			terms.Expires = old.Expires
		}
		if r.Purpose == "" {
			terms.Purpose = old.Purpose
		}
		terms.Fingerprint = key.Fingerprint
		return tx.PutKeyTerms(name, terms)
	})
}

// newKey reads the key of a request.
func (s *Service) newKey(user string, r wire.KeyRequest) (muster.SSHKey, []muster.Problem) {
	line := r.Key
	if r.Authority && !strings.HasPrefix(strings.TrimSpace(line), "cert-authority") {
		line = "cert-authority " + strings.TrimSpace(line)
	}
	key, e := pki.ParseUserKey(line, s.Clock.Now())
	if e != nil {
		return key, []muster.Problem{e.In("key")}
	}
	switch e := pki.CheckPrincipals(r.Principals); {
	case e != nil:
		return key, []muster.Problem{e.In("principals")}
	case len(r.Principals) > 0 && !key.Authority:
		return key, []muster.Problem{{Field: "principals", Reason: muster.ReasonContradiction, Message: "only an authority has principals", Hint: "add --authority, or leave them out"}}
	case len(r.Principals) > 0:
		return pki.WithPrincipals(key, r.Principals), nil
	case key.Authority && len(key.Principals) == 0:
		return pki.WithPrincipals(key, []string{user}), nil
	}
	return key, nil
}

// RemoveKey removes a key, by fingerprint or comment.
func (s *Service) RemoveKey(ctx context.Context, who muster.Actor, name, key string) (wire.KeysChanged, error) {
	return s.changeKeys(ctx, who, name, func(tx *store.Tx, u *muster.User) error {
		var kept []string
		for _, line := range u.Keys {
			k, ok := pki.UserKey(line)
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

// putKey puts a key among a user's: a certificate in the place of an earlier one of its key, an authority in that of
// itself with other principals. What is one of the three does not become another: a key without an end would outlive
// the certificate that limits it.
func putKey(lines []string, key muster.SSHKey) ([]string, error) {
	for i, line := range lines {
		k, ok := pki.UserKey(line)
		if !ok || k.Fingerprint != key.Fingerprint {
			continue
		}
		if k.Authority != key.Authority || k.IsCertificate() != key.IsCertificate() {
			return nil, muster.Errorf(muster.EConflict, "%s is on record as %s", key.Fingerprint, k.Kind()).Because(muster.ReasonWrongPhase).WithHint("remove it first: muster key remove %s", key.Fingerprint)
		}
		if !key.Authority && !key.IsCertificate() {
			return lines, nil // a comment is no other key
		}
		lines = slices.Clone(lines)
		lines[i] = key.Key
		return lines, nil
	}
	return append(slices.Clone(lines), key.Key), nil
}
