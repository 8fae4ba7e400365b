package client

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
)

const maxText = 300 // characters of a server's text that are kept

// unreachable says why there was no answer.
func unreachable(err error) error {
	e := muster.Errorf(muster.EUnavailable, "the server does not answer").Wrap(err)
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.Is(err, context.Canceled):
		return e
	case errors.As(err, &unknown):
		e.Message = "what answers at the server's address is not the server that this node was given"
	case errors.As(err, &name):
		e.Message = "the server's certificate is for another address"
	case errors.As(err, &invalid):
		e.Message = "the server's certificate is not valid now"
		e.Hint = "compare the clocks of node and server"
	}
	return e
}

// Over is the cause of the error of an agent whose attempt is over.
type Over struct {
	PowerOff bool // the machine is to go off now
}

// Error implements error.
func (Over) Error() string { return "the attempt is over" }

// refusal makes an error of an answer that is not a success. The body is the
// server's muster.Error if it is one.
func refusal(status int, body io.Reader) error {
	e := muster.Errorf(code(status), "the server answered %s", http.StatusText(status))
	if status == http.StatusGone {
		e.Err = Over{}
	}
	b, err := io.ReadAll(io.LimitReader(body, maxError))
	if err != nil {
		return e
	}
	var said struct {
		Code    muster.Code   `json:"code"`
		Reason  muster.Reason `json:"reason"`
		Message string        `json:"message"`
		Hint    string        `json:"hint"`
		Off     bool          `json:"power_off"`
	}
	if json.Unmarshal(b, &said) != nil || said.Message == "" {
		return e
	}
	if status == http.StatusGone {
		e.Err = Over{PowerOff: said.Off}
	}
	if known(said.Code) {
		e.Code, e.Reason = said.Code, said.Code.Reason()
	}
	if why := clean(string(said.Reason)); why != "" {
		e.Reason = muster.Reason(why)
	}
	e.Message, e.Hint = clean(said.Message), clean(said.Hint)
	return e
}

func code(status int) muster.Code {
	switch {
	case status == http.StatusUnauthorized:
		return muster.EUnauth
	case status == http.StatusForbidden:
		return muster.EForbidden
	case status == http.StatusNotFound:
		return muster.ENotFound
	case status == http.StatusConflict || status == http.StatusGone:
		return muster.EConflict
	case status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500:
		return muster.EUnavailable
	default:
		return muster.EInvalid
	}
}

func known(c muster.Code) bool {
	switch c {
	case muster.EInvalid, muster.ENotFound, muster.EConflict, muster.EForbidden, muster.EUnauth,
		muster.EUnavailable, muster.ETimeout, muster.EInternal, muster.ECorrupt:
		return true
	}
	return false
}

// clean makes one short line of a text from outside.
func clean(s string) string {
	s = cleantext.Line(s)
	if r := []rune(s); len(r) > maxText {
		s = string(r[:maxText]) + "..."
	}
	return strings.TrimSpace(s)
}
