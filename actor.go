package muster

import "slices"

// Actor is on whose behalf something is read or changed. Every call of the
// store takes one; there is no way around it.
type Actor struct {
	Name     string   // user name, or "system" for Muster's own loops
	Admin    bool     // local root, or a user marked so
	Projects []string // projects the actor belongs to
	Managed  []string // those of them whose manager the actor is
	// ReadOnly: the actor watches the site. It changes nothing, and gets no secret.
	ReadOnly bool
	// Gateway is which gateway asks, where it is a process of its own: it does the work of a gateway
	// and nothing else.
	Gateway string
	Token   string // ID of the token by which the actor came; "" for none
}

// System is the actor of Muster's own loops.
func System() Actor { return Actor{Name: "system", Admin: true} }

// In reports whether the actor belongs to the project, or is an administrator.
func (a Actor) In(project string) bool { return a.Admin || slices.Contains(a.Projects, project) }

// Manages reports whether the actor manages the project, or is an administrator.
func (a Actor) Manages(project string) bool { return a.Admin || slices.Contains(a.Managed, project) }

// User is a person who may use clusters.
type User struct {
	Name     string   `json:"name"`
	UID      int      `json:"uid"` // the same on every node of every cluster; never reused
	FullName string   `json:"full_name,omitempty"`
	Admin    bool     `json:"admin,omitempty"`
	Projects []string `json:"projects"`
	Keys     []string `json:"keys,omitempty"` // authorized_keys lines
}
