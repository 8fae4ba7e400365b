package daemon

import (
	"context"
	"io"

	"github.com/muster-hpc/muster"
)

// console reaches the console of a machine by its provider.
func (s *Server) console(ctx context.Context, m muster.Machine, shell bool) (io.ReadWriteCloser, error) {
	for _, p := range s.providers {
		if p.Name() == m.Provider {
			return p.Console(ctx, m.ID, shell)
		}
	}
	return nil, muster.Errorf(muster.EUnavailable, "machine %s is of provider %s, which this server was started without", m.ID, m.Provider).Because(muster.ReasonNoProvider).
		WithHint("restart the server with the flags it had")
}
