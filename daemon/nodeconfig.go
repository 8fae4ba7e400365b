package daemon

import (
	"fmt"
	"net/netip"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/nodes/nodeconf"
	"github.com/muster-hpc/muster/provider/local/network"
)

// openConfigs makes what makes the configurations of nodes.
func (s *Server) openConfigs() {
	s.configs = nodeconf.NewMaker(nodeconf.Config{
		Store: s.db, Images: s.catalog, Volumes: s.clusterVolumes(), Providers: s.capabilities,
		Proxy: s.proxyOf, Duration: spec.FormatDuration, TimeZone: s.cfg.TimeZone, Time: s.timeOf,
		Licences: control.LicencesOf, Gateway: s.gatewayOf, Places: control.PlacesOf,
		Hosts: s.hosts, Clock: s.cfg.Clock,
	})
}

// timeOf are the NTP servers of a provider's machines: the server itself, where they are
// reached over its boot network or in its rack.
func (s *Server) timeOf(provider string) []string {
	e := s.endpoints[provider]
	can := s.capabilities.Of(provider)
	if e == nil || !can.OwnKernel && can.VM == nil || !e.addr.Is4() {
		return nil
	}
	return []string{e.addr.String()}
}

// gatewayOf is the address at which a machine finds licence servers; "" where there is none.
func (s *Server) gatewayOf(m muster.Machine) string {
	e := s.endpoints[m.Provider]
	if e == nil || e.listenAt == nil {
		return ""
	}
	return e.addr.String()
}

// proxyOf is the URL at which a machine finds the way out; "" where there is none.
func (s *Server) proxyOf(m muster.Machine) string {
	e := s.endpoints[m.Provider]
	if e == nil || e.proxy == nil {
		return ""
	}
	return fmt.Sprintf("http://%s", netip.AddrPortFrom(e.addr, network.ProxyPort))
}
