package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Limits of what the server may send.
const (
	maxConfig = 16 << 20 // thousands of hosts and files
	maxReply  = 64 << 10
	maxOrder  = wire.MaxLaunchInput + 4<<20 // a launch: what it is given, and thousands of hosts
	maxError  = 16 << 10
	maxHeader = 16 << 10
)

// How long one exchange may take. A watch is answered within a minute.
const (
	shortly   = 15 * time.Second
	watchTime = 90 * time.Second
	// What a launch printed may be long.
	launchTime = 2 * time.Minute
	saveTime   = time.Hour // for a whole root file system
)

// Options of a Client.
type Options struct {
	Server string // https://address:port
	CA     string // PEM; the only authority trusted
	// NotBefore is a time that has certainly come: a machine whose clock is
	// behind it takes it for now when it checks certificates.
	NotBefore time.Time
	Now       func() time.Time
	// Dial is nil for the ordinary way.
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Version string // of the agent
	// Epoch is the highest epoch of a server that the node has obeyed. No answer of a server
	// of a lower one counts, whatever it says.
	Epoch int64
	// Obeys is told of a higher one before its first answer counts. Nil: nobody listens.
	Obeys func(epoch int64)
	// Hosts is where lists of hosts are remembered; nil for a place of the
	// client's own.
	Hosts *Hosts
}

// Client speaks to the server. It is safe for concurrent use.
type Client struct {
	server           string
	agent            string
	hosts            *Hosts
	http             http.Client
	pipe             *http.Transport
	cert             atomic.Pointer[tls.Certificate]
	joined           atomic.Bool // the open connection speaks for the node without a certificate
	watched, renewed atomic.Bool // see mind
	epoch            epoch
}

// New makes a Client that has no credential yet. It does not connect.
// The error is EInvalid when CA holds no certificate.
func New(o Options) (*Client, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(o.CA)) {
		return nil, muster.Errorf(muster.EInvalid, "the server's authority is not a certificate")
	}
	c := &Client{server: o.Server, agent: "muster-agent/" + o.Version, hosts: o.Hosts}
	c.epoch.highest, c.epoch.told = o.Epoch, o.Obeys
	if c.hosts == nil {
		c.hosts = new(Hosts)
	}
	dial := o.Dial
	if dial == nil {
		d := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
		dial = d.DialContext
	}
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	c.pipe = &http.Transport{
		DialContext: dial,
		TLSClientConfig: &tls.Config{
			MinVersion:       tls.VersionTLS13,
			CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256}, // what the server takes
			RootCAs:          pool,
			Time:             notBefore(o.NotBefore, o.Now),
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if cert := c.cert.Load(); cert != nil {
					return cert, nil
				}
				return &tls.Certificate{}, nil
			},
		},
		Protocols:              http1,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        5 * time.Minute,
	}
	c.http = http.Client{
		Transport:     c.pipe,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

func notBefore(t time.Time, now func() time.Time) func() time.Time {
	if now == nil {
		now = time.Now
	}
	return func() time.Time {
		if n := now(); n.After(t) {
			return n
		}
		return t
	}
}

// Use presents cert from now on, on new connections. Connections in use are not
// cut, and that over which the node joined goes on where the server allows it.
func (c *Client) Use(cert *tls.Certificate) {
	c.cert.Store(cert)
	if !c.joined.Swap(false) {
		c.pipe.CloseIdleConnections()
	}
}

// Close closes idle connections.
func (c *Client) Close() { c.pipe.CloseIdleConnections() }

// Join exchanges a token for a credential. EUnauth: the token is spent or
// wrong. EInvalid: the server does not speak this protocol.
func (c *Client) Join(ctx context.Context, q wire.JoinRequest) (wire.JoinReply, error) {
	var r wire.JoinReply
	_, err := c.call(ctx, shortly, http.MethodPost, "/v1/join"+apart, q, &r, maxConfig)
	c.joined.Store(err == nil && r.Speak)
	if c.whole(ctx, r.Config) != nil {
		r.Config = nil // it is asked for
	}
	return r, err
}

// Renew asks for a new certificate.
func (c *Client) Renew(ctx context.Context, q wire.RenewRequest) (wire.JoinReply, error) {
	var r wire.JoinReply
	_, err := c.call(ctx, shortly, http.MethodPost, "/v1/renew", q, &r, maxReply)
	return r, err
}

// Config fetches the newest configuration.
func (c *Client) Config(ctx context.Context) (*wire.NodeConfig, error) {
	for tries := 1; ; tries++ {
		r := new(wire.NodeConfig)
		if some, err := c.call(ctx, shortly, http.MethodGet, "/v1/config"+apart, nil, r, maxConfig); err != nil || !some {
			return nil, err
		}
		switch err := c.whole(ctx, r); {
		case err == nil:
			return r, nil
		case muster.CodeOf(err) != muster.ENotFound:
			return nil, err
		case tries == mostTries:
			return nil, muster.Errorf(muster.EUnavailable, "the list of hosts changes faster than it can be fetched").WithHint("try again").Wrap(err)
		}
	}
}

// Watch waits for a configuration newer than generation. It returns nil
// without an error when there was none within the server's time, and an empty
// one when the server has something to say in answer to a report.
func (c *Client) Watch(ctx context.Context, generation int64) (*wire.NodeConfig, error) {
	ctx = c.mind(ctx, !c.watched.Swap(true))
	r := new(wire.NodeConfig)
	path := "/v1/watch" + apart + "&speak=1&generation=" + strconv.FormatInt(generation, 10)
	if some, err := c.call(ctx, watchTime, http.MethodGet, path, nil, r, maxConfig); err != nil || !some {
		return nil, err
	}
	err := c.whole(ctx, r)
	if muster.CodeOf(err) == muster.ENotFound { // there is a newer list
		return c.Config(ctx)
	}
	return r, err
}

// Launched reports how a launch went. out is what it printed; nil: nothing.
func (c *Client) Launched(ctx context.Context, end wire.LaunchEnd, out io.Reader) (r wire.LaunchReply, err error) {
	head, err := json.Marshal(end)
	if err != nil {
		return r, muster.Errorf(muster.EInternal, "a message could not be written").Wrap(err)
	}
	ctx = c.mind(ctx, false)
	body := io.Reader(bytes.NewReader(append(head, '\n')))
	if out != nil {
		body = io.MultiReader(body, out)
	}
	_, err = c.send(ctx, launchTime, http.MethodPost, "/v1/launches", "application/json-seq", body, &r, maxOrder)
	return r, err
}

// Save sends the node's root file system, which the server asked for.
func (c *Client) Save(ctx context.Context, id string, root io.Reader) error {
	ctx = c.mind(ctx, false)
	_, err := c.send(ctx, saveTime, http.MethodPost, "/v1/saves/"+url.PathEscape(id), "application/x-tar", root, nil, maxOrder)
	return err
}

// Report tells the server what is new and that the node lives. fresh means that
// it went over a new connection: perhaps to a server that was started again
// and remembers only what its database holds.
func (c *Client) Report(ctx context.Context, q *wire.Report) (r wire.ReportReply, fresh bool, err error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { fresh = !i.Reused },
	})
	_, err = c.call(ctx, shortly, http.MethodPost, "/v1/report", q, &r, maxOrder)
	if err == nil && c.renewed.Swap(false) {
		fresh = true // another request made the connection that this one went over
	}
	return r, fresh, err
}

// mind remembers that a request made a new connection, over which the next report
// may go: to a server, perhaps, that remembers nothing of this node. A client's
// first watch makes one in any case.
func (c *Client) mind(ctx context.Context, first bool) context.Context {
	if first {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			if !i.Reused {
				c.renewed.Store(true)
			}
		},
	})
}

// call makes one exchange. It returns false for an answer without a body. A
// connection may be left from before there was a credential: who is refused
// presents the credential over a new one.
func (c *Client) call(ctx context.Context, limit time.Duration, method, path string, body, reply any, size int64) (bool, error) {
	some, err := c.exchange(ctx, limit, method, path, body, reply, size)
	if muster.CodeOf(err) == muster.EUnauth && c.cert.Load() != nil {
		c.pipe.CloseIdleConnections()
		some, err = c.exchange(ctx, limit, method, path, body, reply, size)
	}
	return some, err
}

func (c *Client) exchange(ctx context.Context, limit time.Duration, method, path string, body, reply any, size int64) (bool, error) {
	if body == nil {
		return c.send(ctx, limit, method, path, "", nil, reply, size)
	}
	b, err := json.Marshal(body)
	if err != nil {
		return false, muster.Errorf(muster.EInternal, "a message could not be written").Wrap(err)
	}
	return c.send(ctx, limit, method, path, "application/json", bytes.NewReader(b), reply, size)
}

// send sends a body as it is.
func (c *Client) send(ctx context.Context, limit time.Duration, method, path, kind string, in io.Reader, reply any, size int64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, in)
	if err != nil {
		return false, muster.Errorf(muster.EInvalid, "the server's address is not one").Wrap(err)
	}
	req.Header.Set("User-Agent", c.agent)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return false, unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := c.epoch.obey(resp.Header.Get(wire.EpochHeader)); err != nil {
		c.pipe.CloseIdleConnections() // the address may be another server's by now
		return false, err
	}
	switch resp.StatusCode {
	case http.StatusNoContent:
		return false, nil
	case http.StatusOK, http.StatusCreated:
		return true, Decode(resp.Body, size, reply) // which bounds what it inflates to
	default:
		return false, refusal(resp.StatusCode, resp.Body)
	}
}

// Decode reads one JSON value of at most limit bytes. Fields it does not know
// are ignored: a server one version newer may send them. The error is
// EUnavailable, because another try may meet a server that is well.
func Decode(r io.Reader, limit int64, into any) error {
	b, err := io.ReadAll(io.LimitReader(r, limit+1)) // to its end, so that the connection can be used again
	if int64(len(b)) > limit {
		return muster.Errorf(muster.EUnavailable, "the server's answer is longer than %d bytes", limit)
	}
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return muster.Errorf(muster.EUnavailable, "the server's answer is not what was asked for").Wrap(err)
	}
	return nil
}
