package agents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

const (
	journalLines = 50      // kept in memory for each node
	journalBytes = 1 << 20 // of each of a node's two files
)

// journal keeps what nodes logged, so that it survives their machines: the
// newest lines in memory, more of them in two bounded files for each node.
type journal struct {
	dir string
	log *slog.Logger

	mu    sync.Mutex
	nodes map[journalKey]*nodeJournal
}

type journalKey struct {
	cluster muster.ClusterID
	node    string
}

type nodeJournal struct {
	mu     sync.Mutex
	lines  []wire.JournalLine
	failed time.Time // when writing failed was last logged
}

func newJournal(dir string, log *slog.Logger) *journal {
	return &journal{dir: dir, log: log, nodes: map[journalKey]*nodeJournal{}}
}

func (j *journal) of(k journalKey) *nodeJournal {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := j.nodes[k]
	if n == nil {
		n = &nodeJournal{}
		j.nodes[k] = n
	}
	return n
}

// add keeps lines of a node. A disk that is full or failing costs the lines'
// place on it, never the agent's report.
func (j *journal) add(c muster.ClusterID, node string, lines []wire.JournalLine, dropped int64) {
	if dropped > 0 {
		lines = append(lines, wire.JournalLine{At: time.Now().UTC(), Unit: "muster", Priority: 4, Message: fmt.Sprintf("%d lines were lost", dropped)})
	}
	if len(lines) == 0 {
		return
	}
	n := j.of(journalKey{c, node})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, lines...)
	if extra := len(n.lines) - journalLines; extra > 0 {
		n.lines = append([]wire.JournalLine(nil), n.lines[extra:]...)
	}
	if err := j.write(c, node, lines); err != nil && time.Since(n.failed) > time.Minute {
		n.failed = time.Now()
		j.log.Warn("a node's journal cannot be kept", "cluster", c, "node", node, "error", err)
	}
}

// path of a node's journal; "" when journals are kept in memory only.
func (j *journal) path(c muster.ClusterID, node string) string {
	if j.dir == "" || !filepath.IsLocal(string(c)) || !filepath.IsLocal(node) || filepath.Base(node) != node || filepath.Base(string(c)) != string(c) {
		return ""
	}
	return filepath.Join(j.dir, string(c), node+".log")
}

func (j *journal) write(c muster.ClusterID, node string, lines []wire.JournalLine) error {
	path := j.path(c, node)
	if path == "" {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	if info, err := os.Stat(path); err == nil && info.Size()+int64(b.Len()) > journalBytes {
		if err := os.Rename(path, path+".1"); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if os.IsNotExist(err) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		f, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// Journal is the newest lines of a node's journal, at most so many, oldest
// first. It is there also after the machine and the cluster are gone.
func (s *Server) Journal(c muster.ClusterID, node string, most int) ([]wire.JournalLine, error) {
	j := s.journal
	n := j.of(journalKey{c, node})
	n.mu.Lock()
	defer n.mu.Unlock()
	path := j.path(c, node)
	if path == "" || most <= len(n.lines) {
		return append([]wire.JournalLine(nil), n.lines[max(0, len(n.lines)-most):]...), nil
	}
	var out []wire.JournalLine
	for _, p := range []string{path + ".1", path} {
		lines, err := readJournal(p)
		if err != nil {
			return nil, err
		}
		out = append(out, lines...)
	}
	return out[max(0, len(out)-most):], nil
}

func readJournal(path string) ([]wire.JournalLine, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, nil
		}
		return nil, err
	}
	var out []wire.JournalLine
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(make([]byte, 64<<10), 1<<20)
	for sc.Scan() {
		var l wire.JournalLine
		if json.Unmarshal(sc.Bytes(), &l) == nil { // a torn line is left out
			out = append(out, l)
		}
	}
	return out, sc.Err()
}

// PruneJournals removes the journals of clusters that are not to be kept, and
// forgets their nodes.
func (s *Server) PruneJournals(keep func(muster.ClusterID) bool) error {
	j := s.journal
	j.mu.Lock()
	for k := range j.nodes {
		if !keep(k.cluster) {
			delete(j.nodes, k)
		}
	}
	j.mu.Unlock()
	if j.dir == "" {
		return nil
	}
	dirs, err := os.ReadDir(j.dir)
	if err != nil {
		if os.IsNotExist(err) {
			return nil
		}
		return err
	}
	for _, d := range dirs {
		if d.Type() == fs.ModeDir && !keep(muster.ClusterID(d.Name())) {
			if err := os.RemoveAll(filepath.Join(j.dir, d.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
