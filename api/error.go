package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Status is the HTTP status of an error; the table is in docs/users/errors.md.
func Status(err *muster.Error) int {
	switch err.Code {
	case muster.EInvalid:
		return http.StatusBadRequest
	case muster.EUnauth:
		return http.StatusUnauthorized
	case muster.EForbidden:
		return http.StatusForbidden
	case muster.ENotFound:
		return http.StatusNotFound
	case muster.EConflict, muster.ENoCapacity:
		return http.StatusConflict
	case muster.ENever:
		return http.StatusUnprocessableEntity
	case muster.EUnavailable:
		if errors.Is(err, errTooMany) {
			return http.StatusTooManyRequests
		}
		return http.StatusServiceUnavailable
	case muster.ETimeout:
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

// failure is an error on its way out: a muster.Error as the body, and its
// status. It satisfies huma.StatusError.
type failure struct {
	wire.Refused
	status int
}

func (f *failure) GetStatus() int { return f.status }
func (f *failure) Error() string  { return f.Message }

// GetHeaders says when to ask again.
func (f *failure) GetHeaders() http.Header {
	h := http.Header{}
	if wire.RetrySoon(f.status) {
		h.Set("Retry-After", "1")
	}
	return h
}

// fail makes a failure of any error. What is not a muster.Error is a defect:
// it is logged, and the client learns no more than that.
func (a *API) fail(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	e := a.public(ctx, err)
	return &failure{Refused: wire.Refused{Error: *e}, status: Status(e)}
}

// public is the part of an error that may leave the server.
func (a *API) public(ctx context.Context, err error) *muster.Error {
	var known *muster.Error
	switch {
	case errors.As(err, &known):
		if known.Code == muster.EInternal || known.Code == muster.ECorrupt || known.Code == muster.EUnavailable && known.Err != nil {
			a.log.ErrorContext(ctx, "request failed", "error", err) // the client gets no cause
		}
		return known.Because(muster.ReasonOf(known)) // one on record may be older than reasons
	case errors.Is(err, context.Canceled):
		return muster.Errorf(muster.EUnavailable, "the request was given up").Because(muster.ReasonGivenUp)
	case errors.Is(err, context.DeadlineExceeded):
		return muster.Errorf(muster.ETimeout, "the server took too long").Because(muster.ReasonNoAnswer).WithHint("try again")
	}
	a.log.ErrorContext(ctx, "request failed", "error", err)
	return defect()
}

// write sends an error from outside the routes.
func (a *API) write(w http.ResponseWriter, r *http.Request, err error) {
	e := a.public(r.Context(), err)
	if e.Code == muster.EUnauth {
		w.Header().Set("WWW-Authenticate", `Bearer realm="muster"`)
	}
	wire.WriteError(w, Status(e), e)
}

// oneForm turns the framework's own complaints (a body that does not match its
// schema, a bad parameter) into the one form of error that this API has.
func oneForm(_ huma.Context, _ string, v any) (any, error) {
	model, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	e := muster.Errorf(muster.EInvalid, "the request is not valid").Because(muster.ReasonHasProblems).
		WithHint("see /v1/openapi.json for the form of each request")
	switch {
	case model.Status == http.StatusRequestEntityTooLarge:
		e = muster.Errorf(muster.EInvalid, "the request is too large").Because(muster.ReasonTooLarge).WithHint("%s", e.Hint)
	case model.Status == http.StatusUnsupportedMediaType:
		e = muster.Errorf(muster.EInvalid, "the content type is not one that is read here").Because(muster.ReasonUnknownFormat).
			WithHint("send application/json")
	case model.Status >= 500:
		e = defect()
	}
	problems := make([]muster.Problem, 0, len(model.Errors))
	for _, d := range model.Errors {
		problems = append(problems, muster.Problem{Field: strings.TrimPrefix(d.Location, "body."), Message: d.Message})
	}
	return e.Listing(problems), nil
}

// defect is what a client learns of what should not have happened.
func defect() *muster.Error {
	return muster.Errorf(muster.EInternal, "internal error").WithHint("see the server's log")
}
