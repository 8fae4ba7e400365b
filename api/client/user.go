package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Users lists the users that the caller may see.
func (k *Client) Users(ctx context.Context) ([]muster.User, error) {
	return pages(ctx, k, path("users"), nil, 0, func(l wire.UserList) ([]muster.User, wire.More) { return l.Users, l.More })
}

// User shows one user.
func (k *Client) User(ctx context.Context, name string) (muster.User, error) {
	var out muster.User
	return out, k.get(ctx, path("users", name), nil, &out)
}

// PutUser creates a user or changes one.
func (k *Client) PutUser(ctx context.Context, r wire.UserRequest) (muster.User, error) {
	var out muster.User
	return out, k.post(ctx, path("users"), r, &out)
}

// RemoveUser removes a user. Returns EConflict while the user owns clusters.
func (k *Client) RemoveUser(ctx context.Context, name string) error {
	return k.do(ctx, call{method: http.MethodDelete, path: path("users", name)})
}

// Keys lists the SSH keys of a user with their terms and last use.
func (k *Client) Keys(ctx context.Context, user string) ([]muster.SSHKey, error) {
	return pages(ctx, k, path("users", user, "keys"), nil, 0, func(l wire.KeyList) ([]muster.SSHKey, wire.More) { return l.Keys, l.More })
}

// AddKey adds a public SSH key to a user.
func (k *Client) AddKey(ctx context.Context, user string, r wire.KeyRequest) (wire.KeysChanged, error) {
	var out wire.KeysChanged
	return out, k.post(ctx, path("users", user, "keys"), r, &out)
}

// RemoveKey removes a key, by its SHA256 fingerprint or its comment.
func (k *Client) RemoveKey(ctx context.Context, user, key string) (wire.KeysChanged, error) {
	var out wire.KeysChanged
	return out, k.do(ctx, call{method: http.MethodDelete, path: path("users", user, "keys"),
		query: url.Values{"key": {key}}, out: &out})
}

// Tokens lists tokens, of one user or of all that the caller may see.
func (k *Client) Tokens(ctx context.Context, user string) ([]wire.Token, error) {
	query := url.Values{}
	if user != "" {
		query.Set("user", user)
	}
	return pages(ctx, k, path("tokens"), query, 0, func(l wire.TokenList) ([]wire.Token, wire.More) { return l.Tokens, l.More })
}

// CreateToken makes a token; its secret is in this reply and never again.
func (k *Client) CreateToken(ctx context.Context, r wire.TokenRequest) (wire.Token, error) {
	var out wire.Token
	return out, k.post(ctx, path("tokens"), r, &out)
}

// RevokeToken makes a token useless.
func (k *Client) RevokeToken(ctx context.Context, id string) error {
	return k.do(ctx, call{method: http.MethodDelete, path: path("tokens", id)})
}
