package control

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// SigningKeys are the public keys by which this server's certificates are
// verified. They are for everybody.
func (s *Service) SigningKeys(context.Context) wire.SigningKeys {
	out := wire.SigningKeys{Keys: []muster.SigningKey{}}
	if s.Config.SigningKeys != nil {
		out.Keys = append(out.Keys, s.Config.SigningKeys()...)
	}
	return out
}
