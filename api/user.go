package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// UserRef names a user in a path. Embedded parameters are exported because the
// framework skips others.
type UserRef struct {
	User string `path:"user" maxLength:"64"`
}

type userInput struct{ Body wire.UserRequest }

type keyInput struct {
	UserRef
	Body wire.KeyRequest
}

type keysInput struct {
	UserRef
	Page
}

type keyRemoval struct {
	UserRef
	Key string `query:"key" required:"true" maxLength:"256" doc:"SHA256 fingerprint, or the comment"`
}

type tokensInput struct {
	User string `query:"user" maxLength:"64" doc:"Only this user's"`
	Page
}

type tokenInput struct{ Body wire.TokenRequest }

type tokenRef struct {
	Token string `path:"token" maxLength:"64"`
}

func (a *API) userRoutes() {
	users := []string{"users"}
	route(a, huma.Operation{
		OperationID: "list-users", Method: http.MethodGet, Path: "/v1/users", Tags: users,
		Summary: "List the users that the caller may see",
	}, func(ctx context.Context, in *Page) (wire.UserList, error) {
		return a.service.Users(ctx, who(ctx), in.page())
	})
	route(a, huma.Operation{
		OperationID: "show-user", Method: http.MethodGet, Path: "/v1/users/{user}", Tags: users,
		Summary: "Show a user",
	}, func(ctx context.Context, in *UserRef) (muster.User, error) {
		return a.service.User(ctx, who(ctx), in.User)
	})
	route(a, huma.Operation{
		OperationID: "put-user", Method: http.MethodPost, Path: "/v1/users", Tags: users,
		Summary: "Create a user, or change one",
	}, func(ctx context.Context, in *userInput) (muster.User, error) {
		return a.service.PutUser(ctx, who(ctx), in.Body)
	})
	route(a, huma.Operation{
		OperationID: "remove-user", Method: http.MethodDelete, Path: "/v1/users/{user}", Tags: users,
		Summary: "Remove a user who owns no cluster",
	}, func(ctx context.Context, in *UserRef) (wire.Done, error) {
		return wire.Done{Status: "removed"}, a.service.RemoveUser(ctx, who(ctx), in.User)
	})
	route(a, huma.Operation{
		OperationID: "list-keys", Method: http.MethodGet, Path: "/v1/users/{user}/keys", Tags: users,
		Summary: "List a user's SSH keys with their terms and last use: the caller's own, or anybody's for administrators",
	}, func(ctx context.Context, in *keysInput) (wire.KeyList, error) {
		return a.service.Keys(ctx, who(ctx), in.User, in.page())
	})
	route(a, huma.Operation{
		OperationID: "add-key", Method: http.MethodPost, Path: "/v1/users/{user}/keys", Tags: users,
		Summary: "Add a public SSH key to a user",
	}, func(ctx context.Context, in *keyInput) (wire.KeysChanged, error) {
		return a.service.AddKey(ctx, who(ctx), in.User, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "remove-key", Method: http.MethodDelete, Path: "/v1/users/{user}/keys", Tags: users,
		Summary: "Remove a public SSH key from a user",
	}, func(ctx context.Context, in *keyRemoval) (wire.KeysChanged, error) {
		return a.service.RemoveKey(ctx, who(ctx), in.User, in.Key)
	})
	a.tokenRoutes()
}

func (a *API) tokenRoutes() {
	tokens := []string{"tokens"}
	route(a, huma.Operation{
		OperationID: "list-tokens", Method: http.MethodGet, Path: "/v1/tokens", Tags: tokens,
		Summary: "List tokens, without their secrets",
	}, func(ctx context.Context, in *tokensInput) (wire.TokenList, error) {
		return a.service.Tokens(ctx, who(ctx), wire.TokenQuery{User: in.User, Page: in.page()})
	})
	route(a, huma.Operation{
		OperationID: "create-token", Method: http.MethodPost, Path: "/v1/tokens", Tags: tokens,
		Summary:       "Make a token; its secret is in this reply and never again",
		DefaultStatus: http.StatusCreated,
	}, func(ctx context.Context, in *tokenInput) (wire.Token, error) {
		return a.service.CreateToken(ctx, who(ctx), in.Body)
	})
	route(a, huma.Operation{
		OperationID: "revoke-token", Method: http.MethodDelete, Path: "/v1/tokens/{token}", Tags: tokens,
		Summary: "Make a token useless",
	}, func(ctx context.Context, in *tokenRef) (wire.Done, error) {
		return wire.Done{Status: "revoked"}, a.service.RevokeToken(ctx, who(ctx), in.Token)
	})
}
