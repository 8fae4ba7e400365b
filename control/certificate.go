package control

import (
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// mostCertificates is how many certificates a list has at once.
const mostCertificates = 1000

// ChangeKey makes the server sign certificates with a new key. Only administrators
// may.
func (s *Service) ChangeKey(ctx context.Context, who muster.Actor, r wire.ChangeKey) (wire.SigningKeys, error) {
	if !who.Admin {
		return wire.SigningKeys{}, muster.Errorf(muster.EForbidden, "only an administrator changes the key that signs certificates").Because(muster.ReasonAdminOnly).
			WithHint("ask one")
	}
	if s.Config.ChangeKey == nil {
		return wire.SigningKeys{}, muster.Errorf(muster.EUnavailable, "this server signs no certificates").Because(muster.ReasonSignsNothing).WithHint("use a newer version of the server")
	}
	if err := s.Config.ChangeKey(r.Compromised); err != nil {
		return wire.SigningKeys{}, err
	}
	s.Log.Warn("certificate signing key rotated", "by", who.Name, "stolen", r.Compromised)
	return s.SigningKeys(ctx), nil
}

// SigningKeys are the public keys by which this server's certificates are
// verified. They are for everybody.
func (s *Service) SigningKeys(context.Context) wire.SigningKeys {
	out := wire.SigningKeys{Keys: []muster.SigningKey{}}
	if s.Config.SigningKeys != nil {
		out.Keys = append(out.Keys, s.Config.SigningKeys()...)
	}
	return out
}

// Certificates lists certificates that the actor may see, newest first.
func (s *Service) Certificates(ctx context.Context, who muster.Actor, q wire.CertificateQuery) (wire.CertificateList, error) {
	out := wire.CertificateList{Certificates: []wire.CertificateRow{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		f := store.CertificateFilter{Node: q.Node, Machine: q.Machine, Class: q.Class, Kind: q.Kind, Present: q.Present, Since: q.Since, Limit: q.Size() + 1, After: q.After}
		if q.Cluster != "" {
			c, err := tx.FindCluster(q.Cluster)
			if err != nil {
				return err
			}
			f.Cluster = c.ID
		}
		list, err := tx.Certificates(f)
		if err != nil {
			return err
		}
		list, more := partOf(list, q.Page)
		if out.More, err = nextAfter(list, more, func(c store.Certificate) (string, error) { return tx.CertificateCursor(c.ID) }); err != nil {
			return err
		}
		clusters, keys := map[muster.ClusterID]muster.Cluster{}, s.SigningKeys(ctx).Keys
		for _, c := range list {
			of, known := clusters[c.Cluster]
			if !known {
				if of, err = tx.Cluster(c.Cluster); err != nil && muster.CodeOf(err) != muster.ENotFound {
					return err
				}
				clusters[c.Cluster] = of
			}
			out.Certificates = append(out.Certificates, wire.CertificateRow{
				ID: c.ID, Kind: c.Kind, Cluster: c.Cluster, ClusterName: of.Name, Node: c.Node, Machine: c.Machine, Class: c.Class, Level: c.Level,
				Verdict: c.Verdict, Certified: c.Certified, Made: c.Made, Expires: c.Expires, Digest: c.Digest, SupersededBy: c.SupersededBy,
				KeyCompromised: compromised(keys, c.Made), Past: past(of, c.Made),
			})
		}
		return nil
	})
	return out, err
}

// past reports whether a certificate that was made at a time is of machines that its cluster
// has given back as a whole.
func past(c muster.Cluster, made time.Time) bool {
	switch c.Phase {
	case muster.ClusterPaused, muster.ClusterDeleted:
		return true
	case muster.ClusterPausing:
		return c.Pause != nil && !c.Pause.Stopped.IsZero() && !c.KeepsMachines()
	}
	return (c.UsedBefore > 0 || c.Pause != nil && !c.KeepsMachines()) && c.Phase.HoldsMachines() && (c.BuildStarted.IsZero() || made.Before(c.BuildStarted))
}

// compromised reports whether the key that signed at a time is one that others may have.
// Keys sign one after the other.
func compromised(keys []muster.SigningKey, at time.Time) bool {
	return slices.ContainsFunc(keys, func(k muster.SigningKey) bool {
		return !k.Compromised.IsZero() && !at.Before(k.From) && (k.Until.IsZero() || !at.After(k.Until))
	})
}

// Certificate returns a certificate in its envelope, byte by byte as it was signed.
func (s *Service) Certificate(ctx context.Context, who muster.Actor, id muster.CertificateID) ([]byte, error) {
	var out []byte
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		var err error
		out, err = tx.CertificateEnvelope(id)
		return err
	})
	return out, err
}

// nodesOf are the certificates that a manifest names.
func nodesOf(c muster.Certificate) []muster.CertificateID {
	var ids []muster.CertificateID
	for _, n := range c.Nodes {
		ids = append(ids, n.Certificate)
	}
	return ids
}

// agoOf is a time so long ago; zero for none.
func (s *Service) agoOf(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return s.Clock.Now().Add(-d)
}
