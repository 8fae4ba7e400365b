package agentserver

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// hostLists keeps the newest lists of hosts of each cluster as they are sent: a
// list is the same for every node, and writing a thousand names a thousand times
// is most of what answering a thousand agents would cost.
type hostLists struct {
	mu sync.Mutex
	m  map[muster.ClusterID][]hostList // oldest first
}

// hostList is a list, which is shared and never changed.
type hostList struct {
	of     []wire.Host
	digest string // names its content
	gzip   []byte // its JSON
}

const (
	// fewHosts travel with the configuration: they are not worth a request.
	fewHosts = 64
	// keptLists are kept of a cluster: a list may be replaced before the last agent asks for it.
	keptLists = 4
)

// keep returns the digest of a cluster's list, under which it is found from now on.
func (l *hostLists) keep(id muster.ClusterID, hosts []wire.Host) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock() // also while it is written: a thousand agents wait for one
	for _, e := range l.m[id] {
		if len(e.of) == len(hosts) && &e.of[0] == &hosts[0] {
			return e.digest, nil
		}
	}
	b, err := json.Marshal(hosts)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err = z.Write(b)
	if err = errors.Join(err, z.Close()); err != nil {
		return "", err
	}
	if l.m == nil {
		l.m = map[muster.ClusterID][]hostList{}
	}
	e := hostList{of: hosts, digest: fmt.Sprintf("%x", sha256.Sum256(b)), gzip: out.Bytes()}
	all := slices.Concat(l.m[id], []hostList{e})
	l.m[id] = all[max(0, len(all)-keptLists):]
	return e.digest, nil
}

// get returns a cluster's list; nil if it is not kept any more.
func (l *hostLists) get(id muster.ClusterID, digest string) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.m[id] {
		if e.digest == digest {
			return e.gzip
		}
	}
	return nil
}

func (l *hostLists) forget(id muster.ClusterID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.m, id)
}

// apart takes a long list of hosts out of a configuration for an agent that asks for
// it by itself. Others, of an older version, get it with the rest.
func (s *Server) apart(r *http.Request, c *wire.NodeConfig) {
	if len(c.Hosts) <= fewHosts || r.URL.Query().Get("hosts") != "apart" {
		return
	}
	if digest, err := s.hosts.keep(c.Cluster, c.Hosts); err == nil {
		c.Hosts, c.HostsDigest = nil, digest
	}
}

// hostList answers a list of hosts of the asking node's cluster. It is always
// compressed: who asks for it by its digest can undo that.
func (s *Server) hostList(w http.ResponseWriter, r *http.Request) {
	id, _, ok := s.who(w, r)
	if !ok {
		return
	}
	list := s.hosts.get(id.Cluster, r.PathValue("digest"))
	if list == nil {
		wire.WriteError(w, http.StatusNotFound, muster.Errorf(muster.ENotFound, "this list of hosts is not the newest").WithHint("ask for the configuration"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write(list) // an agent that is gone asks again
}
