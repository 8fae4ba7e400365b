package control

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/compare"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// What a table of mixes is made from: machines of one class are alike, so that a few of
// them say what the others would; and not more certificates are opened in all than take
// a moment.
const (
	mixesOfClass = 8
	mixesInAll   = 256
	mixesListed  = 20_000
)

// Mixes is what one core reaches in mixes of arithmetic, by processor model: of the
// newest full certificates that the actor may see, of some machines of each class.
func (s *Service) Mixes(ctx context.Context, who muster.Actor, q wire.MixQuery) (wire.MixTable, error) {
	out := wire.MixTable{Models: []wire.MixModel{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err := tx.Certificates(store.CertificateFilter{Class: q.Class, Kind: muster.CertifiesNode, Limit: mixesListed})
		if err != nil {
			return err
		}
		var ids []muster.CertificateID
		of, seen := map[string]int{}, map[muster.MachineID]bool{}
		for _, c := range list {
			if c.Level != muster.ValidateFull || seen[c.Machine] || of[c.Class] >= mixesOfClass || len(ids) >= mixesInAll {
				continue
			}
			seen[c.Machine] = true
			of[c.Class]++
			ids = append(ids, c.ID)
		}
		certs, err := tx.CertificateContents(ids...)
		if err != nil {
			return err
		}
		out = compare.Mixes(certs)
		return nil
	})
	return out, err
}
