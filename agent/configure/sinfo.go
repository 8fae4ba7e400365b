package configure

import (
	"slices"
	"strconv"
	"strings"
)

// slurmNode is what slurmctld says of one node.
type slurmNode struct {
	base   string // idle, mixed, allocated, down, unknown, future, ...
	flags  []string
	addr   string
	cpus   int
	memory int64 // MiB
	reason string
}

// sinfoFormat asks for all that parseSinfo reads. The reason stands last: it is
// free text.
const sinfoFormat = "NodeList:|,StateComplete:|,NodeAddr:|,CPUs:|,Memory:|,Reason:|"

func sinfoQuestion() []string {
	return []string{"--noheader", "--Node", "--future", "--Format=" + sinfoFormat}
}

// parseSinfo reads what sinfo answers to that. A node of several partitions
// counts once. Lines that are not of this form are passed over.
func parseSinfo(text string) map[string]slurmNode {
	nodes := map[string]slurmNode{}
	for line := range strings.Lines(text) {
		p := strings.SplitN(strings.TrimSpace(line), "|", 6)
		if len(p) != 6 || !hostName.MatchString(p[0]) {
			continue
		}
		states := strings.Split(strings.ToLower(p[1]), "+")
		if slices.ContainsFunc(states, badState) {
			continue
		}
		n := slurmNode{base: states[0], flags: states[1:], addr: p[2]}
		n.cpus, _ = strconv.Atoi(p[3])
		n.memory, _ = strconv.ParseInt(p[4], 10, 64)
		if n.reason = strings.TrimSuffix(p[5], "|"); n.reason == "none" || n.reason == "(null)" {
			n.reason = ""
		}
		nodes[p[0]] = n
	}
	return nodes
}

// parseScontrol reads what "scontrol --oneliner show nodes" prints.
func parseScontrol(text string) map[string]slurmNode {
	nodes := map[string]slurmNode{}
	for line := range strings.Lines(text) {
		settings, reason, _ := strings.Cut(strings.TrimSpace(line), " Reason=")
		var n slurmNode
		var name string
		for _, f := range strings.Fields(settings) {
			key, value, _ := strings.Cut(f, "=")
			switch key {
			case "NodeName":
				name = value
			case "State":
				// A star stands for a flag that has its own name elsewhere.
				words, silent := strings.ToLower(value), strings.Contains(value, "*")
				states := strings.Split(strings.ReplaceAll(words, "*", ""), "+")
				n.base, n.flags = states[0], states[1:]
				if silent && !n.has("not_responding") {
					n.flags = append(n.flags, "not_responding")
				}
			case "NodeAddr":
				n.addr = value
			case "CPUTot":
				n.cpus, _ = strconv.Atoi(value)
			case "RealMemory":
				n.memory, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		if !hostName.MatchString(name) || badState(n.base) || slices.ContainsFunc(n.flags, badState) {
			continue
		}
		// Who said so, and when, stands behind it.
		if i := strings.LastIndex(reason, " ["); i >= 0 {
			reason = reason[:i]
		}
		n.reason = reason
		nodes[name] = n
	}
	return nodes
}

func badState(s string) bool {
	return s == "" || len(s) > 32 || strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' && r != '-' })
}

func (n slurmNode) has(flag string) bool { return slices.Contains(n.flags, flag) }

// future nodes are declared and have never registered, or have left: no user
// sees them.
func (n slurmNode) future() bool { return n.base == "future" }

// busy reports whether jobs are on the node, or end there.
func (n slurmNode) busy() bool {
	return n.base == "mixed" || n.base == "allocated" || n.has("completing")
}

// word is the state as the server hears it: the words of sinfo, with "*" for a
// node that does not answer.
func (n slurmNode) word() string {
	w := n.base
	switch {
	case n.has("drain") && n.busy():
		w = "draining"
	case n.has("drain"):
		w = "drained"
	case n.has("completing"):
		w = "completing"
	case n.has("fail"):
		w = "fail"
	case n.has("maintenance") && w == "idle":
		w = "maint"
	}
	if n.has("not_responding") {
		w += "*"
	}
	return w
}

// words gives the states of the nodes that there are for users.
func words(nodes map[string]slurmNode) map[string]string {
	m := make(map[string]string, len(nodes))
	for name, n := range nodes {
		if !n.future() {
			m[name] = n.word()
		}
	}
	return m
}

// maxReason bounds what anybody may have written.
const maxReason = 200

// reasons reports the nodes that take no jobs why, where it is not Muster's doing, or
// nothing else tells of it.
func reasons(nodes map[string]slurmNode) map[string]string {
	m := map[string]string{}
	for name, n := range nodes {
		if n.future() || n.base != "down" && !n.has("drain") && !n.has("fail") || strings.HasPrefix(n.reason, ours) && n.reason != reasonMute {
			continue
		}
		m[name] = clip(n.reason[:min(len(n.reason), maxReason)])
	}
	return m
}

// usable reports whether a node in this state takes jobs, now or after the one
// that it has.
func usable(state string) bool {
	switch state {
	case "idle", "mixed", "allocated", "completing", "reserved", "planned":
		return true
	}
	return false
}
