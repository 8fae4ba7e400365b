package client

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/muster-hpc/muster"
)

// DefaultServer is where a server of this host listens unless told otherwise.
const DefaultServer = "unix:/var/lib/muster/muster.sock"

// Address is a parsed server address.
type Address struct {
	Socket string // path, for a Unix socket
	Host   string // host:port, for HTTPS
}

// String is the form that ParseAddress reads.
func (a Address) String() string {
	if a.Socket != "" {
		return "unix:" + a.Socket
	}
	return "https://" + a.Host
}

// ParseAddress reads "unix:PATH" or "https://host[:port]". An empty text means
// DefaultServer. Returns EInvalid for anything else, plain http among it: a
// token must not travel in the clear.
func ParseAddress(s string) (Address, error) {
	if s == "" {
		s = DefaultServer
	}
	bad := muster.Errorf(muster.EInvalid, "not a server address: %q", s).Because(muster.ReasonBadAddress).
		WithHint("write unix:/path/to/muster.sock or https://host:port")
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if path == "" || strings.ContainsRune(path, 0) {
			return Address{}, bad
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return Address{}, bad.Wrap(err)
		}
		return Address{Socket: abs}, nil
	}
	if strings.HasPrefix(s, "/") {
		return Address{Socket: filepath.Clean(s)}, nil
	}
	u, err := url.Parse(s)
	if err != nil {
		return Address{}, bad
	}
	if u.Scheme == "http" {
		return Address{}, muster.Errorf(muster.EInvalid, "plain http is not offered: %q", s).Because(muster.ReasonBadAddress).
			WithHint("use https://, or unix: on the server's own host")
	}
	if u.Scheme != "https" || u.Hostname() == "" || u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return Address{}, bad
	}
	host := u.Host
	if u.Port() == "" {
		host += ":7777"
	}
	return Address{Host: host}, nil
}
