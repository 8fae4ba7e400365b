package configure

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/muster-hpc/muster/internal/nodeset"
)

// slurmModel is a slurmctld as far as this package talks to it, with its
// habits: RESUME leaves a node unresponsive until it is heard, a second
// "create" of a name loses the node, FUTURE needs a node without jobs.
type slurmModel struct {
	mu    sync.Mutex
	order []string
	nodes map[string]*slurmNode
	lost  map[string]bool   // known to the table, not by name
	jobs  map[string]bool   // nodes with a job
	queue string            // what squeue prints
	marks string            // what squeue prints of which jobs are lost in a pause
	owner map[string]string // of a job, when squeue is asked for that alone
	down  bool              // does not answer
}

func newSlurm(names ...string) *slurmModel {
	m := &slurmModel{nodes: map[string]*slurmNode{}, lost: map[string]bool{}, jobs: map[string]bool{}}
	for _, n := range names {
		m.order = append(m.order, n)
		m.nodes[n] = &slurmNode{base: "idle", cpus: 1, memory: 900}
	}
	return m
}

// register is what a slurmd does when it starts.
func (m *slurmModel) register(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.nodes[name]
	if n == nil {
		n = &slurmNode{}
		m.order, m.nodes[name] = append(m.order, name), n
	}
	n.base, n.flags = "idle", slices.DeleteFunc(n.flags, func(f string) bool { return f == "not_responding" })
	if n.reason == "Not responding" {
		n.reason = ""
	}
}

func (m *slurmModel) word(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.nodes[name]; n != nil && !n.future() && !m.lost[name] {
		return n.word()
	}
	return ""
}

var errModel = errors.New("slurm_update error: Invalid node name specified")

// answer is for fakeRun.
func (m *slurmModel) answer(line string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := strings.Fields(line)
	if m.down && (p[0] == "sinfo" || p[0] == "squeue" || p[0] == "scontrol") {
		return "", errors.New("Unable to contact slurm controller")
	}
	switch {
	case p[0] == "sinfo":
		var b strings.Builder
		for _, name := range m.order {
			n := m.nodes[name]
			if n != nil && !m.lost[name] {
				fmt.Fprintf(&b, "%s|%s|%s|%d|%d|%s|\n", name, strings.Join(append([]string{n.base}, n.flags...), "+"), n.addr, n.cpus, n.memory, n.reason)
			}
		}
		return b.String() + "\n", nil
	case p[0] == "squeue" && p[len(p)-1] == "--format=%U":
		return m.owner[strings.TrimPrefix(p[2], "--jobs=")] + "\n", nil
	case p[0] == "squeue" && strings.Contains(line, "BatchFlag"):
		return m.marks, nil
	case p[0] == "squeue":
		return marked(line, m.queue+"\n"), nil
	case strings.HasPrefix(line, "scontrol reconfigure"):
		for name := range m.lost {
			delete(m.nodes, name)
			m.order = slices.DeleteFunc(m.order, func(o string) bool { return o == name })
		}
		clear(m.lost)
	case strings.HasPrefix(line, "scontrol create "):
		return "", m.create(expand(p[2]))
	case strings.HasPrefix(line, "scontrol delete "):
		for _, name := range expand(p[2]) {
			delete(m.nodes, name)
			m.order = slices.DeleteFunc(m.order, func(o string) bool { return o == name })
		}
	case strings.HasPrefix(line, "scontrol update NodeName="):
		_, reason, _ := strings.Cut(line, "Reason=")
		state := strings.TrimPrefix(p[3], "State=")
		for _, name := range expand(p[2]) {
			n := m.nodes[name]
			if n == nil || m.lost[name] || n.future() {
				return "", errModel
			}
			if err := m.update(name, n, state, reason); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

func expand(arg string) []string {
	_, text, _ := strings.Cut(arg, "=")
	s, err := nodeset.Parse(text)
	if err != nil {
		return nil
	}
	names, _ := s.Expand()
	return names
}

func (m *slurmModel) create(names []string) error {
	for _, name := range names {
		if m.nodes[name] != nil {
			m.lost[name] = true
			return errors.New("scontrol: exit status 1: Error creating node(s): Node already exists in the node table")
		}
		m.order, m.nodes[name] = append(m.order, name), &slurmNode{base: "future"}
	}
	return nil
}

func (m *slurmModel) update(name string, n *slurmNode, state, reason string) error {
	drop := func(flag string) {
		n.flags = slices.DeleteFunc(n.flags, func(f string) bool { return f == flag })
	}
	switch state {
	case "DRAIN":
		drop("drain")
		n.flags, n.reason = append(n.flags, "drain"), reason
	case "DOWN":
		n.base, n.reason = "down", reason
		delete(m.jobs, name)
	case "UNDRAIN":
		drop("drain")
		if n.base != "down" {
			n.reason = ""
		}
	case "RESUME":
		drop("drain")
		drop("not_responding")
		n.base, n.reason = "idle", ""
		n.flags = append(n.flags, "not_responding")
	case "FUTURE":
		if m.jobs[name] {
			return errors.New("node is busy")
		}
		*n = slurmNode{base: "future", addr: n.addr, cpus: n.cpus, memory: n.memory}
	}
	return nil
}

// marked begins each line of squeue's answer with the mark of the question.
func marked(question, lines string) string {
	_, format, _ := strings.Cut(question, "--format=")
	mark, _, _ := strings.Cut(format, "%i")
	var b strings.Builder
	for line := range strings.Lines(lines) {
		b.WriteString(mark + line)
	}
	return b.String()
}
