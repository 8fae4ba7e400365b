package agentserver

import (
	"sync/atomic"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// followerRoom is how many lines may wait for one who follows.
const followerRoom = 4096

// follower is one who wants the lines of a cluster as they come.
type follower struct {
	c    chan wire.LogLine
	lost atomic.Int64
}

// Follow passes on the lines of a cluster's nodes as they come, until leave is
// called. Who reads too slowly misses some; lost reports how many since it was
// asked last.
func (s *Server) Follow(id muster.ClusterID) (lines <-chan wire.LogLine, lost func() int64, leave func()) {
	j := s.journal
	f := &follower{c: make(chan wire.LogLine, followerRoom)}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.followers[id] == nil {
		j.followers[id] = map[*follower]struct{}{}
	}
	j.followers[id][f] = struct{}{}
	return f.c, func() int64 { return f.lost.Swap(0) }, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if delete(j.followers[id], f); len(j.followers[id]) == 0 {
			delete(j.followers, id)
		}
	}
}

// tell passes lines to those who follow. It never waits.
func (j *journal) tell(id muster.ClusterID, node string, lines []wire.JournalLine) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for f := range j.followers[id] {
		for _, l := range lines {
			select {
			case f.c <- wire.LogLine{Node: node, JournalLine: l}:
			default:
				f.lost.Add(1)
			}
		}
	}
}
