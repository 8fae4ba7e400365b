package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/muster-hpc/muster"
)

// Config says which server to speak to, and as whom.
type Config struct {
	Server string // unix:PATH or https://host:port; "" means DefaultServer
	Token  string // bearer token; needed with https
	CA     string // file with the server's authority in PEM; "" means the system's
	// UserAgent is sent with every request.
	UserAgent string
	// Retry is how long an interrupted event stream waits before it connects
	// again. Zero: 100 ms, growing to 5 s.
	Retry time.Duration
}

// Client speaks to one server. It is safe for concurrent use.
type Client struct {
	address Address
	token   string
	agent   string
	retry   time.Duration
	tls     *tls.Config
	http    *http.Client
}

// New makes a client; it does not connect yet. Returns EInvalid for a bad
// address or authority file, and EUnauth when HTTPS is used without a token.
func New(c Config) (*Client, error) {
	address, err := ParseAddress(c.Server)
	if err != nil {
		return nil, err
	}
	k := &Client{address: address, token: c.Token, agent: c.UserAgent, retry: c.Retry}
	if k.retry <= 0 {
		k.retry = 100 * time.Millisecond
	}
	if address.Socket == "" {
		if c.Token == "" {
			return nil, muster.Errorf(muster.EUnauth, "no token for %s", address).Because(muster.ReasonNoToken).
				WithHint("set MUSTER_TOKEN, or name a file with --token-file; an administrator makes one with 'muster token create USER'")
		}
		if k.tls, err = tlsConfig(address.Host, c.CA); err != nil {
			return nil, err
		}
	}
	k.http = &http.Client{
		Transport: &http.Transport{
			DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return k.dial(ctx) },
			DialTLSContext:      func(ctx context.Context, _, _ string) (net.Conn, error) { return k.dial(ctx) },
			MaxIdleConns:        16,
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return k, nil
}

// Address reports which server the client speaks to.
func (k *Client) Address() Address { return k.address }

// Close drops idle connections.
func (k *Client) Close() { k.http.CloseIdleConnections() }

func tlsConfig(host, ca string) (*tls.Config, error) {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "not a host and port: %q", host).Because(muster.ReasonBadAddress).Wrap(err)
	}
	// HTTP/1.1 only: a tunnel takes its connection over.
	cfg := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}
	if ca == "" {
		return cfg, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "cannot read the authority file %s", ca).Because(muster.ReasonFileUnreadable).
			WithHint("give the path of the server's CA certificate with --ca or MUSTER_CA").Wrap(err)
	}
	cfg.RootCAs = x509.NewCertPool()
	if !cfg.RootCAs.AppendCertsFromPEM(pem) {
		return nil, muster.Errorf(muster.EInvalid, "no certificate in %s", ca).Because(muster.ReasonFileUnreadable).
			WithHint("the file must hold the server's CA certificate in PEM")
	}
	return cfg, nil
}

// dial opens one connection to the server, secured where it is not local.
func (k *Client) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second}
	if k.address.Socket != "" {
		return d.DialContext(ctx, "unix", k.address.Socket)
	}
	t := tls.Dialer{NetDialer: &d, Config: k.tls}
	return t.DialContext(ctx, "tcp", k.address.Host)
}
