package redfish

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/muster-hpc/muster"
)

// dialTime bounds the connection and the handshake each: a controller that is
// there answers these at once.
const dialTime = 5 * time.Second

// client makes requests to one controller.
type client struct {
	base   string // https://host:port
	pinned bool   // its certificate is
	http   *http.Client
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func newClient(a muster.PowerAddress) (*client, error) {
	host, port := a.Endpoint()
	conf, err := tlsConfig(a, host)
	if err != nil {
		return nil, err
	}
	return &client{
		base: "https://" + net.JoinHostPort(host, strconv.Itoa(port)), pinned: conf.RootCAs == nil,
		http: &http.Client{
			Transport: &http.Transport{
				DialTLSContext: dialTLS(conf),
				MaxIdleConns:   1, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
				MaxResponseHeaderBytes: 64 << 10,
			},
			// A token must not follow to another place.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// do makes one request. The answer may be a refusal: see refused.
func (c *client) do(ctx context.Context, method, path string, headers map[string]string, body any) (answer, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return answer{}, muster.Errorf(muster.EInternal, "a request to a controller could not be written").Wrap(err)
		}
		r = bytes.NewReader(b)
	}
	q, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return answer{}, foreign()
	}
	q.Header.Set("Accept", "application/json")
	q.Header.Set("OData-Version", "4.0")
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	for k, v := range headers {
		q.Header.Set(k, v)
	}
	resp, err := c.http.Do(q)
	if err != nil {
		return answer{}, c.failed(ctx, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return answer{}, c.failed(ctx, err)
	}
	if len(b) > maxBody {
		return answer{}, muster.Errorf(muster.ECorrupt, "its Redfish controller sent more than %d bytes", maxBody).Because(muster.ReasonControllerNonsense)
	}
	return answer{resp.StatusCode, resp.Header, b}, nil
}

// failed makes an error of a request that got no answer.
func (c *client) failed(ctx context.Context, err error) error {
	place := c.base[len("https://"):]
	var pin pinError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var handshake *handshakeError
	switch {
	case errors.As(err, &pin):
		return muster.Errorf(muster.EUnauth, "its Redfish controller at %s shows another certificate than the one pinned", place).Because(muster.ReasonBadCertificate).
			WithHint("if the controller got a new one, pin it (certificate_sha256: %s); if not, somebody is in between", pin.shown).Wrap(err)
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid):
		return muster.Errorf(muster.EUnauth, "the certificate of its Redfish controller at %s is not one of the authority's for that name", place).Because(muster.ReasonBadCertificate).
			WithHint("give the controller a certificate of that authority, or pin the one it has").Wrap(err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return muster.Errorf(muster.ETimeout, "its Redfish controller at %s did not answer in time", place).Because(muster.ReasonNoAnswer).
			WithHint("see that the controller works; restart it if it does not").Wrap(err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &handshake):
		return noTLS(place, c.pinned, handshake)
	}
	return muster.Errorf(muster.EUnavailable, "its Redfish controller at %s cannot be reached: %v", place, lowest(err)).Because(muster.ReasonControllerUnreachable).
		WithHint("see that Redfish is switched on in the controller, and that this server has a route to it").Wrap(err)
}

// lowest is what went wrong with a connection, without who says so: connection refused.
func lowest(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return err
}
