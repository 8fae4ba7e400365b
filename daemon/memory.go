package daemon

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How much memory the server takes before garbage is collected more often.
// Below plentiful it is left to Go, which doubles what is in use. A large site
// that rests gets a tenth more than that; one with much to do doubles it, too, so
// that it does not collect all the time.
const (
	plentiful  = 256 << 20
	memoryLook = 15 * time.Second
	muchToDo   = 5 // collections between two looks
)

// boundMemory keeps the memory of a server with thousands of agents near what it
// uses, until ctx ends, and leaves alone who set GOMEMLIMIT or GOGC.
func boundMemory(ctx context.Context) error {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return nil
	}
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	tick := time.NewTicker(memoryLook)
	defer tick.Stop()
	var cycles uint64
	for {
		used, now := memoryInUse()
		debug.SetMemoryLimit(memoryFor(used, now-cycles > muchToDo))
		cycles = now
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// memoryFor is the limit for a server that uses so much: never so near that
// collecting is all it does.
func memoryFor(used int64, busy bool) int64 {
	if busy {
		return max(plentiful, 2*used)
	}
	return max(plentiful, used+used/10)
}

// memoryInUse is what was alive at the last collection, with the gaps between
// it and what else cannot be collected, and how many collections there were. The
// gaps count against the limit though they are not alive.
func memoryInUse() (used int64, cycles uint64) {
	const count = "/gc/cycles/total:gc-cycles"
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/os-stacks:bytes"},
		{Name: "/memory/classes/metadata/other:bytes"}, {Name: "/memory/classes/other:bytes"}, {Name: "/memory/classes/profiling/buckets:bytes"},
		{Name: count},
	}
	metrics.Read(s)
	for _, x := range s {
		switch {
		case x.Value.Kind() != metrics.KindUint64:
		case x.Name == count:
			cycles = x.Value.Uint64()
		default:
			used += int64(x.Value.Uint64())
		}
	}
	return used, cycles
}
