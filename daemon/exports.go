package daemon

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/nfs"
)

// openExports makes what serves volumes over the network of bare machines. Where that
// cannot be, clusters with volumes are told why.
func (s *Server) openExports() {
	c := nfs.ExportsConfig{Store: s.db, Providers: s.capabilities, Clock: s.cfg.Clock, Log: s.log}
	if s.metal == nil {
		c.Why = muster.Errorf(muster.EUnavailable, "this server was started without bare machines").Because(muster.ReasonNoProvider).WithHint("start it with --metal-interface again")
		s.exports = nfs.NewExports(c)
		return
	}
	server, err := nfs.Open(nfs.Config{Dir: s.state.path("export"), Address: s.metal.address, Clock: s.cfg.Clock, Log: s.log})
	if err != nil {
		s.log.Warn("volume export unavailable", "error", err)
		c.Why = err
	} else {
		s.closes(func() error { server.Close(); return nil })
		c.Server, c.Address = server, s.metal.provider.Management
	}
	s.exports = nfs.NewExports(c)
}
