package daemon

import "github.com/muster-hpc/muster/wire"

// figures are what the parts of the server count, for a monitoring system.
func (s *Server) figures() []wire.Metric {
	one := func(name, help string, counter bool, v float64) wire.Metric {
		return wire.Metric{Name: name, Help: help, Counter: counter, Values: []wire.MetricValue{{Value: v}}}
	}
	failing := 0
	for _, times := range s.converge.Failing() {
		failing += times
	}
	silent, expected := s.agents.SilentAgents()
	list := []wire.Metric{
		one("muster_agents_connected", "Machines whose agent has spoken.", false, float64(s.agents.Connected())),
		one("muster_agents_expected", "Agents that should report.", false, float64(expected)),
		one("muster_agents_silent", "Agents that should report and do not.", false, float64(silent)),
		one("muster_agent_reports_total", "Reports of agents taken.", true, float64(s.agents.Reports())),
		one("muster_converge_failing", "Clusters and machines that the loops cannot bring on.", false, float64(len(s.converge.Failing()))),
		one("muster_converge_failures", "How often in a row they failed, summed.", false, float64(failing)),
	}
	if s.gateway != nil {
		list = append(list, s.gateway.Figures()...)
	}
	return list
}
