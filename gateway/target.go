package gateway

import (
	"strings"

	"github.com/muster-hpc/muster"
)

// Login is what the user name that a client sends says.
type Login struct {
	User string
	// Target is where the plain door shall lead; the zero value at the jump door.
	Target muster.DoorTarget
}

// Plain reports whether the name asks for the plain door.
func (l Login) Plain() bool { return l.Target.Cluster != "" }

// ParseLogin reads USER, or CLUSTER[.NODE][+PROJECT]+USER. False: it is neither.
func ParseLogin(name string) (Login, bool) {
	at := strings.LastIndexByte(name, '+')
	l := Login{User: name[at+1:]}
	if !muster.IsUserName(l.User) {
		return Login{}, false
	}
	if at < 0 {
		return l, true
	}
	var ok bool
	l.Target, ok = ParseTarget(name[:at])
	if !ok {
		return Login{}, false
	}
	return l, true
}

// ParseTarget reads CLUSTER[.NODE][+PROJECT]. False: it is none. Addresses are none.
func ParseTarget(text string) (muster.DoorTarget, bool) {
	place, project, named := strings.Cut(text, "+")
	cluster, node, noded := strings.Cut(place, ".")
	if !isLabel(cluster) || noded && !isLabel(node) || named && !isProject(project) {
		return muster.DoorTarget{}, false
	}
	return muster.DoorTarget{Cluster: cluster, Node: node, Project: project}, true
}

// longestName is that of a label of a host name, and of a project.
const longestName = 63

func isLabel(s string) bool {
	if s == "" || len(s) > longestName || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

func isProject(s string) bool {
	if s == "" || len(s) > longestName || s[0] == '-' || s[0] == '.' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
