package control

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Metrics are the present figures of what the actor may see, for a monitoring
// system: machines by phase, clusters and their nodes; for administrators the
// server itself, too.
func (s *Service) Metrics(ctx context.Context, who muster.Actor) ([]wire.Metric, error) {
	var m metrics
	top, err := s.Top(ctx, who, "")
	if err != nil {
		return nil, err
	}
	machines := m.gauge("muster_machines", "Machines of the site by phase.", "phase")
	for _, p := range muster.MachinePhases() {
		machines.add(float64(top.Site.Machines[p]), string(p))
	}
	s.clusterMetrics(&m, top)
	if err := s.nodeMetrics(ctx, &m, who); err != nil {
		return nil, err
	}
	if who.Admin {
		s.serverMetrics(&m)
	}
	out := make([]wire.Metric, 0, len(m.list))
	for _, f := range m.list {
		out = append(out, f.Metric)
	}
	return out, nil
}

// metrics collects families.
type metrics struct{ list []*family }

type family struct{ wire.Metric }

func (m *metrics) gauge(name, help string, labels ...string) *family {
	f := &family{wire.Metric{Name: name, Help: help, Labels: labels}}
	m.list = append(m.list, f)
	return f
}

func (m *metrics) counter(name, help string, labels ...string) *family {
	f := m.gauge(name, help, labels...)
	f.Counter = true
	return f
}

func (f *family) add(v float64, labels ...string) {
	f.Values = append(f.Values, wire.MetricValue{Labels: labels, Value: v})
}

func (s *Service) clusterMetrics(m *metrics, top wire.Top) {
	label := []string{"cluster", "name", "project"}
	ready := m.gauge("muster_cluster_ready", "1 while the cluster is ready.", label...)
	phase := m.gauge("muster_cluster_phase", "1 for the phase that the cluster is in.", append(label, "phase")...)
	up := m.gauge("muster_cluster_nodes_up", "Nodes that are ready.", label...)
	down := m.gauge("muster_cluster_nodes_down", "Nodes whose machine is lost and not replaced yet.", label...)
	total := m.gauge("muster_cluster_nodes", "All nodes of the cluster.", label...)
	jobs := m.gauge("muster_cluster_jobs_running", "Jobs that run.", label...)
	pending := m.gauge("muster_cluster_jobs_pending", "Jobs that wait.", label...)
	busy := m.gauge("muster_cluster_cores_busy", "Cores busy on all nodes.", label...)
	cores := m.gauge("muster_cluster_cores", "Cores of all nodes.", label...)
	expires := m.gauge("muster_cluster_expires_seconds", "When the walltime ends, in seconds since 1970.", label...)
	for _, c := range top.Clusters {
		id := []string{string(c.ID), c.Name, c.Project}
		isReady := 0.0
		if c.Status == muster.ClusterReady {
			isReady = 1
		}
		ready.add(isReady, id...)
		phase.add(1, append(id, string(c.Status))...)
		up.add(float64(c.Up), id...)
		down.add(float64(c.Down), id...)
		total.add(float64(c.Nodes), id...)
		jobs.add(float64(c.Jobs), id...)
		pending.add(float64(c.Pending), id...)
		busy.add(c.CoresBusy, id...)
		cores.add(float64(c.Cores), id...)
		if !c.Expires.IsZero() {
			expires.add(float64(c.Expires.Unix()), id...)
		}
	}
}

// nodeMetrics tells the newest sample of each node.
func (s *Service) nodeMetrics(ctx context.Context, m *metrics, who muster.Actor) error {
	var nodes map[muster.ClusterID][]muster.Node
	var list []muster.Cluster
	err := s.Store.View(ctx, who, func(tx *store.Tx) (err error) {
		if list, err = tx.Clusters(store.ClusterFilter{Living: true}); err != nil {
			return err
		}
		ids := make([]muster.ClusterID, len(list))
		for i, c := range list {
			ids[i] = c.ID
		}
		nodes, err = tx.NodesOf(ids...)
		return err
	})
	if err != nil {
		return err
	}
	label := []string{"cluster", "node"}
	info := m.gauge("muster_node_info", "1 for the machine and the phase of each node.", append(label, "machine", "phase")...)
	cpu := m.gauge("muster_node_cpu_cores", "Cores busy.", append(label, "mode")...)
	load := m.gauge("muster_node_load1", "Processes that run or want to, over a minute.", label...)
	memory := m.gauge("muster_node_memory_used_bytes", "Memory in use, without caches.", label...)
	memoryTotal := m.gauge("muster_node_memory_bytes", "Memory of the node.", label...)
	rx := m.counter("muster_node_network_receive_bytes_total", "Bytes received since the node booted.", append(label, "network")...)
	tx := m.counter("muster_node_network_transmit_bytes_total", "Bytes sent since the node booted.", append(label, "network")...)
	read := m.counter("muster_node_disk_read_bytes_total", "Bytes read from disks since the node booted.", label...)
	written := m.counter("muster_node_disk_written_bytes_total", "Bytes written to disks since the node booted.", label...)
	disk := m.gauge("muster_node_disk_used_bytes", "Bytes of the root file system in use.", label...)
	diskTotal := m.gauge("muster_node_disk_bytes", "Bytes of the root file system.", label...)
	processes := m.gauge("muster_node_processes", "Processes.", label...)
	seen := m.gauge("muster_node_seen_seconds", "When the node was last heard of, in seconds since 1970.", label...)
	for _, c := range list {
		for _, n := range nodes[c.ID] {
			if n.Phase == muster.NodeGone {
				continue
			}
			id := []string{string(c.ID), n.Name}
			info.add(1, append(id, string(n.Machine), string(n.Phase))...)
			if s.Agents == nil || n.Machine == "" {
				continue
			}
			if at := s.Contacts.Answered(n.Machine); !at.IsZero() {
				seen.add(float64(at.Unix()), id...)
			}
			samples := s.Agents.Usage(n.Machine, 1)
			if len(samples) == 0 {
				continue
			}
			u := samples[len(samples)-1]
			cpu.add(u.CPUUser, append(id, "user")...)
			cpu.add(u.CPUSystem, append(id, "system")...)
			cpu.add(u.CPUWait, append(id, "wait")...)
			load.add(u.Load1, id...)
			memory.add(float64(u.MemoryUsed), id...)
			memoryTotal.add(float64(u.MemoryTotal), id...)
			rx.add(float64(u.NetRx), append(id, "message")...)
			rx.add(float64(u.MgmtRx), append(id, "management")...)
			tx.add(float64(u.NetTx), append(id, "message")...)
			tx.add(float64(u.MgmtTx), append(id, "management")...)
			read.add(float64(u.DiskRead), id...)
			written.add(float64(u.DiskWrite), id...)
			disk.add(float64(u.DiskUsed), id...)
			diskTotal.add(float64(u.DiskTotal), id...)
			processes.add(float64(u.Processes), id...)
		}
	}
	return nil
}

// serverMetrics reports how the server is doing.
func (s *Service) serverMetrics(m *metrics) {
	m.gauge("muster_info", "1 for the version that runs.", "version", "instance").add(1, s.Version, s.Instance)
	st := s.Store.Stats()
	m.counter("muster_store_updates_total", "Changes made durable.").add(float64(st.Updates))
	m.counter("muster_store_commits_total", "Flushes of the disk for them.").add(float64(st.Commits))
	m.gauge("muster_store_bytes", "Size of the store.").add(float64(st.Size))
	m.gauge("muster_store_log_bytes", "Size of its write-ahead log.").add(float64(st.LogSize))
	if s.Series != nil {
		st := s.Series.Stats()
		m.counter("muster_series_samples_total", "Samples of usage taken.").add(float64(st.Samples))
		m.counter("muster_series_dropped_total", "Samples that could not be kept.").add(float64(st.Dropped))
		m.counter("muster_series_blocks_total", "Blocks of samples written.").add(float64(st.Blocks))
		m.gauge("muster_series_bytes", "Bytes in use in the file of samples.").add(float64(st.Bytes))
		m.gauge("muster_series_bound_bytes", "Most bytes that the file of samples may have.").add(float64(st.Bound))
		m.gauge("muster_series_waiting", "Samples that wait to be written.").add(float64(st.Waiting))
	}
	if s.Figures != nil {
		for _, f := range s.Figures() {
			m.list = append(m.list, &family{f})
		}
	}
}
