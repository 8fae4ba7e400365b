package daemon

import (
	"context"
	"time"

	"github.com/muster-hpc/muster/control/series"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// openSeries opens the store of what is measured over time. Whatever is wrong
// with it, the server goes on.
func (s *Server) openSeries(ctx context.Context) {
	s.series = series.Open(ctx, s.state.path("series.db"), series.Options{
		Clock: s.cfg.Clock, Log: s.log, MaxBytes: s.cfg.SeriesBytes,
		Census: func(ctx context.Context) ([]series.Count, error) { return s.control.Gauges(ctx) },
	})
	s.closes(s.series.Close)
}

// sample takes what a node uses, as its agent said it.
func (s *Server) sample(now time.Time, id pki.NodeIdentity, boot string, u wire.Usage) {
	s.series.Node(now, id.Cluster, id.Node, id.Machine, boot, u)
}
