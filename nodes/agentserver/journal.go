package agentserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

const (
	journalLines = 50      // kept in memory for each node
	journalBytes = 1 << 20 // of each of a node's two files
)

// serverUnit is the unit of lines that this server adds. Nodes cannot speak in
// its name.
const serverUnit = "muster"

// journal keeps what nodes logged, so that it survives their machines: the
// newest lines in memory, more of them in two bounded files for each node.
type journal struct {
	dir   string
	log   *slog.Logger
	clock muster.Clock

	mu        sync.Mutex
	nodes     map[journalKey]*nodeJournal
	followers map[muster.ClusterID]map[*follower]struct{}
}

type journalKey struct {
	cluster muster.ClusterID
	node    string
}

type nodeJournal struct {
	mu     sync.Mutex
	lines  []wire.JournalLine
	failed time.Time // when writing failed was last logged
	mark   *wire.JournalLine
	last   string // message of the mark that was written last
}

func newJournal(dir string, log *slog.Logger, clock muster.Clock) *journal {
	return &journal{dir: dir, log: log, clock: clock, nodes: map[journalKey]*nodeJournal{}, followers: map[muster.ClusterID]map[*follower]struct{}{}}
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

// begins remembers where a new attempt's lines begin, and on which machine. It
// is written with the first of them: a node that says nothing has no journal.
func (j *journal) begins(id pki.NodeIdentity) {
	n := j.of(journalKey{id.Cluster, id.Node})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mark = &wire.JournalLine{
		At: j.clock.Now().UTC(), Unit: serverUnit, Priority: 5,
		Message: fmt.Sprintf("---- attempt %d of %s begins, on machine %s ----", id.Attempt, id.Node, id.Machine),
	}
}

// marked puts the mark of a new attempt before its first lines, which are older
// than the agent's first word.
func (n *nodeJournal) marked(lines []wire.JournalLine) []wire.JournalLine {
	mark := n.mark
	if n.mark = nil; mark == nil || mark.Message == n.last {
		return lines
	}
	n.last = mark.Message
	if first := lines[0].At; first.Before(mark.At) && mark.At.Sub(first) < 10*time.Minute {
		mark.At = first.Add(-time.Microsecond)
	}
	return append([]wire.JournalLine{*mark}, lines...)
}

// add keeps lines of a node. A disk that is full or failing costs the lines'
// place on it, never the agent's report.
func (j *journal) add(c muster.ClusterID, node string, lines []wire.JournalLine, dropped int64) {
	for i := range lines {
		if lines[i].Unit == serverUnit {
			lines[i].Unit = serverUnit + " (node)"
		}
	}
	if dropped > 0 {
		lines = append(lines, wire.JournalLine{At: j.clock.Now().UTC(), Unit: serverUnit, Priority: 4, Message: fmt.Sprintf("%d lines were lost", dropped)})
	}
	j.keep(c, node, lines)
}

func (j *journal) keep(c muster.ClusterID, node string, lines []wire.JournalLine) {
	if len(lines) == 0 {
		return
	}
	n := j.of(journalKey{c, node})
	n.mu.Lock()
	defer n.mu.Unlock()
	lines = n.marked(lines)
	n.lines = append(n.lines, lines...)
	if extra := len(n.lines) - journalLines; extra > 0 {
		n.lines = append([]wire.JournalLine(nil), n.lines[extra:]...)
	}
	if err := j.write(c, node, lines); err != nil && time.Since(n.failed) > time.Minute {
		n.failed = time.Now()
		j.log.Warn("storing node journal failed", "cluster", c, "node", node, "error", err)
	}
	j.tell(c, node, lines)
}

// path of a node's journal; "" when journals are kept in memory only.
func (j *journal) path(c muster.ClusterID, node string) string {
	if j.dir == "" || !filepath.IsLocal(string(c)) || !filepath.IsLocal(node) || filepath.Base(node) != node || filepath.Base(string(c)) != string(c) {
		return ""
	}
	return filepath.Join(j.dir, string(c), node+journalEnd)
}

const journalEnd = ".log"

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
	return s.Lines(c, node, wire.LogQuery{Lines: most})
}

// Lines is the newest lines of a node's journal that a query wants, at most
// q.Lines, oldest first. It is there also after the machine and the cluster
// are gone.
func (s *Server) Lines(c muster.ClusterID, node string, q wire.LogQuery) ([]wire.JournalLine, error) {
	j := s.journal
	path := j.path(c, node)
	if strings.ContainsAny(node, "/\x00") {
		return nil, nil
	}
	n := j.of(journalKey{c, node})
	n.mu.Lock()
	plain := q.Unit == "" && !q.Filter && q.Since.IsZero()
	if path == "" || plain && q.Lines <= len(n.lines) {
		defer n.mu.Unlock()
		var out []wire.JournalLine
		for _, l := range n.lines {
			if q.Matches(l) {
				out = append(out, l)
			}
		}
		return out[max(0, len(out)-q.Lines):], nil
	}
	n.mu.Unlock() // what is written meanwhile is newer: no reader needs it
	return tailJournal([]string{path, path + ".1"}, q)
}
