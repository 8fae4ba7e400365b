package client

import (
	"strconv"
	"sync"

	"github.com/muster-hpc/muster"
)

// epoch is the highest epoch of a server that this node has obeyed.
type epoch struct {
	mu      sync.Mutex
	highest int64
	told    func(int64)
}

// obey notes the epoch that a server's answer tells. EUnavailable: it is lower than that
// of another server, and the answer does not count; another try may meet that one.
func (e *epoch) obey(told string) error {
	of := parseEpoch(told)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case of < e.highest:
		return muster.Errorf(muster.EUnavailable, "what answers is a server of epoch %d, and this node obeys the one of epoch %d", of, e.highest).Because(muster.ReasonServerReplaced).
			WithHint("stop the older server; the node works on, and tries again")
	case of > e.highest:
		e.highest = of
		if e.told != nil {
			e.told(of)
		}
	}
	return nil
}

// parseEpoch reads the epoch that an answer tells; 1 for one that tells none.
func parseEpoch(told string) int64 {
	n, err := strconv.ParseInt(told, 10, 64)
	if err != nil || n < 1 {
		return 1
	}
	return n
}
