package wire

import "time"

// Reach is a node's word about another one that the server does not hear:
// whether something alive answered at its message address.
type Reach struct {
	Name string    `json:"name"`
	OK   bool      `json:"ok"`
	At   time.Time `json:"at"` // by the server's clock; the agent leaves it out
}
