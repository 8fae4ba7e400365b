package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// maxReply bounds what is read from a server that answers with nonsense.
const maxReply = 64 << 20

// call is one request and what becomes of its reply.
type call struct {
	method string
	path   string
	query  url.Values
	header http.Header
	body   []byte
	out    any
	alsoOK int // a status of 300 or above that has a reply like others
}

// path joins escaped segments under /v1.
func path(segments ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

func (k *Client) get(ctx context.Context, path string, query url.Values, out any) error {
	return k.do(ctx, call{method: http.MethodGet, path: path, query: query, out: out})
}

// post sends in as JSON.
func (k *Client) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return muster.Errorf(muster.EInternal, "cannot encode the request").Wrap(err)
	}
	return k.do(ctx, call{method: http.MethodPost, path: path, body: body, out: out,
		header: http.Header{"Content-Type": {"application/json"}}})
}

func (k *Client) do(ctx context.Context, c call) error {
	resp, err := k.send(ctx, c)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if c.out == nil || resp.StatusCode == http.StatusNoContent {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(c.out); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return muster.Errorf(muster.EUnavailable, "the reply of %s broke off or is not JSON", k.address).Because(muster.ReasonBrokenOff).
			WithHint("try again; compare 'muster version' with 'muster server' if it stays").Wrap(err)
	}
	return nil
}

// busyError is the refusal of a request that was not begun: it may be sent again as it is.
type busyError struct {
	err   error
	after time.Duration
}

func (e *busyError) Error() string { return e.err.Error() }
func (e *busyError) Unwrap() error { return e.err }

// mostTries is how often a request is sent to a server that is busy.
const mostTries = 5

// patiently asks again, when the server says, where too many requests are under way.
func patiently[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		out, err := ask()
		var busy *busyError
		if !errors.As(err, &busy) || try == mostTries {
			return out, err
		}
		// Those that were refused together do not come back together.
		if _, err := pause(ctx, busy.after+rand.N(busy.after/2+1)); err != nil {
			return out, err
		}
	}
}

// send makes the request and returns the reply if its status is below 300.
func (k *Client) send(ctx context.Context, c call) (*http.Response, error) {
	return patiently(ctx, func() (*http.Response, error) { return k.sendOnce(ctx, c) })
}

func (k *Client) sendOnce(ctx context.Context, c call) (*http.Response, error) {
	req, err := k.request(ctx, c)
	if err != nil {
		return nil, err
	}
	resp, err := k.http.Do(req)
	if err != nil {
		return nil, k.explain(ctx, err)
	}
	if resp.StatusCode >= 300 && resp.StatusCode != c.alsoOK {
		defer resp.Body.Close()
		return nil, readError(resp)
	}
	return resp, nil
}

func (k *Client) request(ctx context.Context, c call) (*http.Request, error) {
	base := "http://muster"
	if k.address.Socket == "" {
		base = "https://" + k.address.Host
	}
	target := base + c.path
	if len(c.query) > 0 {
		target += "?" + c.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, c.method, target, bytes.NewReader(c.body))
	if err != nil {
		return nil, muster.Errorf(muster.EInternal, "cannot make the request").Wrap(err)
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	if k.token != "" {
		req.Header.Set("Authorization", "Bearer "+k.token)
	}
	if k.agent != "" {
		req.Header.Set("User-Agent", k.agent)
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	return req, nil
}

// RefusedError is a muster.Error with the answer of admission.
type RefusedError struct {
	Err    *muster.Error
	Answer *muster.Answer
}

// Error is the message of the refusal.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap gives the plain error.
func (e *RefusedError) Unwrap() error { return e.Err }

func readError(resp *http.Response) error {
	err := readRefusal(resp)
	if resp.StatusCode != http.StatusTooManyRequests {
		return err
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return &busyError{err, time.Duration(min(max(seconds, 0), 10)) * time.Second}
}

func readRefusal(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	var r wire.Refused
	if err := json.Unmarshal(body, &r); err == nil && r.Code != "" && r.Message != "" {
		e := r.Error
		if r.Answer != nil {
			return &RefusedError{Err: &e, Answer: r.Answer}
		}
		return &e
	}
	code := muster.EInternal
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		code = muster.EUnauth
	case http.StatusForbidden:
		code = muster.EForbidden
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		code = muster.ENotFound
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		code = muster.EUnavailable
	}
	return muster.Errorf(code, "the server answered %s", resp.Status).Because(muster.ReasonServerUnreachable).
		WithHint("this does not look like a Muster server of this version; check --server and 'muster version'")
}

// explain turns a failure to connect into what to do about it.
func (k *Client) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return muster.Errorf(muster.ETimeout, "no answer from %s in time", k.address).Because(muster.ReasonNoAnswer).Wrap(ctx.Err())
		}
		return ctx.Err()
	}
	var cert *tls.CertificateVerificationError
	var name x509.HostnameError
	switch {
	case errors.As(err, &name):
		return muster.Errorf(muster.EUnauth, "the certificate of %s is for other names", k.address).Because(muster.ReasonBadCertificate).
			WithHint("use one of these in --server or MUSTER_SERVER: %s", certificateNames(name.Certificate)).Wrap(err)
	case errors.As(err, &cert):
		return muster.Errorf(muster.EUnauth, "the certificate of %s is not trusted", k.address).Because(muster.ReasonBadCertificate).
			WithHint("give the server's CA certificate with --ca FILE or MUSTER_CA").Wrap(err)
	case k.address.Socket != "" && errors.Is(err, fs.ErrNotExist):
		return k.noServer("no server runs at " + k.address.String()).Wrap(err)
	case k.address.Socket != "" && errors.Is(err, syscall.ECONNREFUSED):
		return k.noServer("the server at " + k.address.String() + " has stopped").Wrap(err)
	case errors.Is(err, fs.ErrPermission):
		return muster.Errorf(muster.EForbidden, "you may not use %s", k.address).Because(muster.ReasonAdminOnly).
			WithHint("the socket is for the administrator: use sudo, or --server https://HOST:PORT with MUSTER_TOKEN").Wrap(err)
	}
	return muster.Errorf(muster.EUnavailable, "cannot reach %s: %v", k.address, cause(err)).Because(muster.ReasonServerUnreachable).
		WithHint("check that the server runs and that the address is right").Wrap(err)
}

func (k *Client) noServer(message string) *muster.Error {
	e := muster.Errorf(muster.EUnavailable, "%s", message).Because(muster.ReasonServerUnreachable)
	if k.address.String() == DefaultServer {
		return e.WithHint("start one with 'sudo muster serve', or name another with --server or MUSTER_SERVER")
	}
	if info, err := os.Stat(k.address.Socket); err == nil && info.IsDir() {
		e.Message = k.address.Socket + " is a directory, not a socket"
		return e.WithHint("write the socket in it: --server unix:%s/muster.sock", strings.TrimSuffix(k.address.Socket, "/"))
	}
	dir := strings.TrimSuffix(k.address.Socket, "/muster.sock")
	return e.WithHint("start it with 'muster serve --state %s', or correct --server or MUSTER_SERVER", dir)
}

// cause is the innermost error: "connection refused" and not the whole chain.
func cause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		var sys *os.SyscallError
		if errors.As(err, &sys) {
			return fmt.Errorf("%w", sys.Err)
		}
		err = next
	}
}

// certificateNames are the names and addresses of a certificate that is
// trusted.
func certificateNames(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return strings.Join(names, ", ")
}
