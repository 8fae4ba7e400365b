package control

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// directoryAge is how old a directory may be of records that have not changed: what it says of waiting
// clusters contains when they start.
const directoryAge = 30 * time.Second

// gatewayDirectory says who may reach what, for gateways that cannot ask for each session. Each of them asks every
// two seconds; it is made anew when a record has changed.
type gatewayDirectory struct {
	mu       sync.Mutex // also while it is made: one is enough
	made     int        // how often
	known    bool
	of       store.Version
	by       *Policy
	at       time.Time
	version  string
	contents wire.GatewayDirectory
}

// directoryNow is a directory that is not changed any more.
type directoryNow struct {
	version  string
	contents wire.GatewayDirectory
}

func (d *gatewayDirectory) now(ctx context.Context, s *Service) (out directoryNow, _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return out, s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		of, known, err := tx.Version()
		if err != nil {
			return err
		}
		by, now := s.policy.Load(), s.Clock.Now()
		if !known || !d.known || of != d.of || by != d.by || now.Sub(d.at) >= directoryAge {
			if d.contents, err = s.makeDirectory(tx); err != nil {
				return err
			}
			text, err := json.Marshal(d.contents)
			if err != nil {
				return err
			}
			d.version, d.known, d.of, d.by, d.at = fmt.Sprintf("%x", sha256.Sum256(text)), known, of, by, now
			d.made++
		}
		out = directoryNow{d.version, d.contents}
		return nil
	})
}

func (s *Service) makeDirectory(tx *store.Tx) (d wire.GatewayDirectory, _ error) {
	d = wire.GatewayDirectory{Users: []wire.GatewayUser{}, Clusters: []wire.GatewayCluster{}}
	users, err := tx.Users()
	if err != nil {
		return d, err
	}
	terms, err := tx.AllKeyTerms()
	if err != nil {
		return d, err
	}
	for _, u := range users {
		one := wire.GatewayUser{Name: u.Name, Keys: []wire.GatewayKey{}}
		for _, k := range keysUnder(u, terms[u.Name]) {
			key := wire.GatewayKey{Fingerprint: k.Fingerprint, Expires: k.Expires, Authority: k.Authority, Principals: k.Principals}
			if k.IsCertificate() {
				key.Certificate = k.Key
			}
			one.Keys = append(one.Keys, key)
		}
		if len(one.Keys) > 0 {
			d.Users = append(d.Users, one)
		}
	}
	list, err := tx.Clusters(store.ClusterFilter{Living: true})
	if err != nil {
		return d, err
	}
	for _, c := range list {
		one, err := s.gatewayCluster(tx, c)
		if err != nil {
			return d, err
		}
		d.Clusters = append(d.Clusters, one)
	}
	return d, nil
}
