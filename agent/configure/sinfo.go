package configure

import (
	"strings"
)

// parseSinfo reads lines of "name state", as sinfo prints them for one node
// each, and gives the state of each node. Marks at a state's end are folded
// in: "*" (does not answer) makes it "unresponsive", the others say how it got
// there and are dropped. A node of several partitions counts once. Lines that
// are not of this form are passed over.
func parseSinfo(text string) map[string]string {
	nodes := map[string]string{}
	for line := range strings.Lines(text) {
		p := strings.Fields(line)
		if len(p) != 2 || !hostName.MatchString(p[0]) {
			continue
		}
		state := strings.ToLower(strings.TrimRight(p[1], "*~#!%$@^-+"))
		if strings.ContainsAny(p[1], "*") && !strings.HasPrefix(state, "down") {
			state = "unresponsive"
		}
		if state == "" || strings.ContainsFunc(state, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' && r != '-' }) {
			continue
		}
		nodes[p[0]] = state
	}
	return nodes
}

// parseSqueue counts running and pending jobs in lines of one state each.
func parseSqueue(text string) (running, pending int) {
	for line := range strings.Lines(text) {
		switch strings.ToUpper(strings.TrimSpace(line)) {
		case "R", "RUNNING", "CG", "COMPLETING":
			running++
		case "PD", "PENDING":
			pending++
		}
	}
	return running, pending
}

// usable tells whether a node in this state takes jobs, now or after the one
// that it has.
func usable(state string) bool {
	switch state {
	case "idle", "mixed", "allocated", "completing", "reserved", "planned":
		return true
	}
	return false
}
