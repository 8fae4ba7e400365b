package gateway

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Figures are what a monitoring system sees of a gateway.
func (s *Server) Figures() []wire.Metric {
	one := func(name, help string, counter bool, v float64) wire.Metric {
		return wire.Metric{Name: name, Help: help, Counter: counter, Values: []wire.MetricValue{{Value: v}}}
	}
	open := map[muster.Door]float64{}
	received, sent := s.received.Load(), s.sent.Load()
	for _, r := range s.Sessions() {
		open[r.Door]++
		received, sent = received+r.Received, sent+r.Sent
	}
	lasting := wire.Metric{Name: "muster_gateway_sessions", Help: "Sessions that are open, by door.", Labels: []string{"door"}}
	opened := wire.Metric{Name: "muster_gateway_sessions_total", Help: "Sessions that were opened, by door.", Counter: true, Labels: []string{"door"}}
	for _, d := range muster.Doors() {
		lasting.Values = append(lasting.Values, wire.MetricValue{Labels: []string{string(d)}, Value: open[d]})
		opened.Values = append(opened.Values, wire.MetricValue{Labels: []string{string(d)}, Value: float64(s.opened[d].Load())})
	}
	return []wire.Metric{
		lasting, opened,
		one("muster_gateway_connections_total", "Connections that were accepted.", true, float64(s.connections.Load())),
		one("muster_gateway_logins_total", "Connections whose user was recognized.", true, float64(s.logins.Load())),
		one("muster_gateway_refused_total", "Connections that ended before their user was recognized.", true, float64(s.refused.Load())),
		one("muster_gateway_kept_out_total", "Connections that were closed at once: too many of that address had failed.", true, float64(s.out.Load())),
		one("muster_gateway_nowhere_total", "Doors that led nowhere: a cluster that is not ready, or a node that does not answer.", true, float64(s.nowhere.Load())),
		one("muster_gateway_received_bytes_total", "Bytes from clients in sessions.", true, float64(received)),
		one("muster_gateway_sent_bytes_total", "Bytes to clients in sessions.", true, float64(sent)),
	}
}
