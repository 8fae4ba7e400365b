package wire

import "time"

// UserRequest creates or changes a user.
type UserRequest struct {
	Name     string   `json:"name"`
	UID      int      `json:"uid,omitempty"` // default: the next free one
	FullName string   `json:"full_name,omitempty"`
	Projects []string `json:"projects,omitempty"` // default: one named as the user
	Keys     []string `json:"keys,omitempty"`
	Admin    bool     `json:"admin,omitempty"`
}

// Token is a bearer token's record; Secret only in the reply that makes it.
type Token struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`
	Note    string    `json:"note,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	Secret  string    `json:"secret,omitempty"`
	// ReadOnly: it reads everything that administrators read but secrets, and changes nothing.
	ReadOnly bool `json:"read_only,omitempty" doc:"It reads everything but secrets, and changes nothing"`
}

// TokenRequest makes a token.
type TokenRequest struct {
	User string `json:"user"`
	Note string `json:"note,omitempty"`
	TTL  string `json:"ttl,omitempty"` // 30d; default 90d
	// ReadOnly makes one for what watches the site; administrators only.
	ReadOnly bool `json:"read_only,omitempty" doc:"It reads everything but secrets, and changes nothing; administrators only"`
}
