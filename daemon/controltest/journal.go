package controltest

import (
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// journal is what nodes are made to have logged.
type journal struct {
	jmu       sync.Mutex
	lines     map[string][]wire.JournalLine // by cluster/node
	followers map[chan wire.LogLine]muster.ClusterID
}

// Lines is the newest lines that PutJournal set.
func (j *journal) Lines(cluster muster.ClusterID, node string, q wire.LogQuery) (out []wire.JournalLine) {
	j.jmu.Lock()
	defer j.jmu.Unlock()
	for _, l := range j.lines[string(cluster)+"/"+node] {
		if q.Matches(l) {
			out = append(out, l)
		}
	}
	return out[max(0, len(out)-q.Lines):]
}

// Follow passes on what PutJournal adds.
func (j *journal) Follow(cluster muster.ClusterID) (<-chan wire.LogLine, func() int64, func()) {
	j.jmu.Lock()
	defer j.jmu.Unlock()
	if j.followers == nil {
		j.followers = map[chan wire.LogLine]muster.ClusterID{}
	}
	c := make(chan wire.LogLine, 1024)
	j.followers[c] = cluster
	return c, func() int64 { return 0 }, func() {
		j.jmu.Lock()
		defer j.jmu.Unlock()
		delete(j.followers, c)
	}
}

// PutJournal sets the journal of a node. What it is longer by than before is
// told to those who follow.
func (a *Agents) PutJournal(cluster muster.ClusterID, node string, lines ...wire.JournalLine) {
	j := &a.journal
	j.jmu.Lock()
	defer j.jmu.Unlock()
	if j.lines == nil {
		j.lines = map[string][]wire.JournalLine{}
	}
	key := string(cluster) + "/" + node
	for _, l := range lines[min(len(lines), len(j.lines[key])):] {
		for c, id := range j.followers {
			if id == cluster {
				c <- wire.LogLine{Node: node, JournalLine: l}
			}
		}
	}
	j.lines[key] = lines
}
