package client

import (
	"context"
	"net/http"
	"net/url"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// apart asks for configurations without their lists of hosts, where those are
// long: most changes leave the list as it was.
const apart = "?hosts=apart"

// mostTries of a configuration whose list of hosts is replaced meanwhile.
const mostTries = 5

// Hosts remembers lists of hosts by their digests. The zero value is ready, and
// remembers the newest list. Clients that share one fetch each list once; nobody
// changes a list.
type Hosts struct {
	Most int // lists that are remembered; 0: one

	mu sync.Mutex
	m  map[string][]wire.Host
}

// of returns a list, which fetch gets if it is not known. Who wants one meanwhile
// waits: it is the same list, most likely.
func (h *Hosts) of(digest string, fetch func() ([]wire.Host, error)) ([]wire.Host, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if list, ok := h.m[digest]; ok {
		return list, nil
	}
	list, err := fetch()
	if err != nil {
		return nil, err
	}
	if h.m == nil {
		h.m = map[string][]wire.Host{}
	}
	if len(h.m) >= max(h.Most, 1) {
		clear(h.m)
	}
	h.m[digest] = list
	return list, nil
}

// whole puts the list of hosts into a configuration that came without it.
// ENotFound: the server has a newer configuration.
func (c *Client) whole(ctx context.Context, cfg *wire.NodeConfig) error {
	if cfg == nil || cfg.HostsDigest == "" {
		return nil
	}
	list, err := c.hosts.of(cfg.HostsDigest, func() (list []wire.Host, err error) {
		some, err := c.call(c.mind(ctx, false), shortly, http.MethodGet, "/v1/hosts/"+url.PathEscape(cfg.HostsDigest), nil, &list, maxConfig)
		if err == nil && !some {
			err = muster.Errorf(muster.EUnavailable, "the server's answer is empty")
		}
		return list, err
	})
	if err != nil {
		return err
	}
	cfg.Hosts, cfg.HostsDigest = list, ""
	return nil
}
