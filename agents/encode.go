package agents

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"net/http"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// hostLists keeps the list of hosts of each cluster in the form in which it is
// sent: it is the same for every node, and writing a thousand names a thousand
// times is most of what answering a thousand agents would cost.
type hostLists struct {
	mu sync.Mutex
	m  map[muster.ClusterID]hostList
}

// hostList is known by where the list is: lists are shared and never changed.
type hostList struct {
	first *wire.Host
	n     int
	json  []byte
	gzip  []byte // the same, if it is long
}

// long is what is worth compressing: less takes a packet or two as it is.
const long = 8 << 10

func (l *hostLists) of(c *wire.NodeConfig) (hostList, error) {
	l.mu.Lock()
	defer l.mu.Unlock() // also while it is written: a thousand agents wait for one
	if e := l.m[c.Cluster]; e.json != nil && e.first == &c.Hosts[0] && e.n == len(c.Hosts) {
		return e, nil
	}
	b, err := json.Marshal(c.Hosts)
	if err != nil {
		return hostList{}, err
	}
	e := hostList{first: &c.Hosts[0], n: len(c.Hosts), json: b}
	if len(b) > long {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err = w.Write(b)
		if err = errors.Join(err, w.Close()); err != nil {
			return hostList{}, err
		}
		e.gzip = out.Bytes()
	}
	if l.m == nil {
		l.m = map[muster.ClusterID]hostList{}
	}
	l.m[c.Cluster] = e
	return e, nil
}

func (l *hostLists) forget(id muster.ClusterID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.m, id)
}

// noHosts is how a configuration without hosts is written. Quotes inside of
// texts are escaped: it is found nowhere else.
const noHosts = `"hosts":null`

// answerConfig answers v, which holds the configuration c, or is it.
func (s *Server) answerConfig(w http.ResponseWriter, r *http.Request, v any, c *wire.NodeConfig) {
	if c == nil || len(c.Hosts) == 0 {
		answer(w, v)
		return
	}
	hosts, err := s.hosts.of(c)
	if err != nil {
		answer(w, v)
		return
	}
	all := c.Hosts
	c.Hosts = nil
	b, err := json.Marshal(v)
	c.Hosts = all
	at := bytes.Index(b, []byte(noHosts))
	if err != nil || at < 0 {
		answer(w, v)
		return
	}
	at += len(noHosts) - len("null")
	w.Header().Set("Content-Type", "application/json")
	parts := [][]byte{b[:at], hosts.json, b[at+len("null"):]}
	if hosts.gzip != nil && r.Header.Get("Accept-Encoding") == "gzip" {
		w.Header().Set("Content-Encoding", "gzip")
		parts = [][]byte{stored(parts[0]), hosts.gzip, stored(parts[2])}
	}
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return // the agent is gone and asks again
		}
	}
}

// stored is a text as a member of a gzip file, not compressed: it is short, and
// each node's own. Files may follow each other and are one.
func stored(b []byte) []byte {
	out := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}
	sum := crc32.ChecksumIEEE(b)
	for n, rest := 0, b; ; rest = rest[n:] {
		n = min(len(rest), 1<<16-1)
		last := byte(0)
		if n == len(rest) {
			last = 1
		}
		out = append(out, last, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		out = append(out, rest[:n]...)
		if last == 1 {
			break
		}
	}
	out = binary.LittleEndian.AppendUint32(out, sum)
	return binary.LittleEndian.AppendUint32(out, uint32(len(b)))
}
