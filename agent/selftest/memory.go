package selftest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
)

// Memory is written with patterns and read back, by all processors at the same time.
type Memory struct {
	CPUs []int
	// Bytes is how much is tried at most, Total how much the machine has.
	Bytes, Total int64
	// Fill is how long the first pass may take: what is not filled by then is not
	// tried. Each other pass takes about as long as the first.
	Fill  time.Duration
	Clock muster.Clock
	// Pin keeps the calling thread on a processor, so that memory near to it is
	// tried by it; nil asks the kernel.
	Pin func(cpu int) error
	// Take gets memory that nobody has touched; nil asks the kernel. What it gives is
	// given back at the end of the trial, so that no part is tried twice.
	Take func(words int) (words64 []uint64, free func(), err error)
	// Between is called after each pass; nil: nothing is. A test breaks memory there.
	Between func(pass int, blocks [][]uint64)
}

// blockWords is how much memory is taken at a time: 16 MiB.
const blockWords = 2 << 20

// Fault is a word that did not hold what was written.
type Fault struct {
	Address   uint64 // physical, where the kernel tells it
	Want, Got uint64
}

func (f Fault) String() string {
	if f.Address == 0 {
		return fmt.Sprintf("bits %016x flipped", f.Want^f.Got)
	}
	return fmt.Sprintf("bits %016x flipped at physical address %#x", f.Want^f.Got, f.Address)
}

// block is a part of the memory; first is the number of its first word among all.
type block struct {
	words []uint64
	first uint64
	free  func()
}

// pattern is what a word holds in a pass. In the first, every word holds another
// number, so that addresses that are mixed up show, too; in the second every bit is
// the other way round; in the third one bit walks over the words.
func pattern(pass int, salt, i uint64) uint64 {
	switch pass {
	case 0:
		return (i ^ salt) * 0x9e3779b97f4a7c15
	case 1:
		return ^((i ^ salt) * 0x9e3779b97f4a7c15)
	}
	return 1 << ((i + i>>6) & 63)
}

const passes = 3 // patterns; each is checked by the pass that comes next

// Run tries the memory. The step says how much of it was tried, and where it failed.
func (m Memory) Run(ctx context.Context) muster.CleanStep {
	step := muster.CleanStep{What: "memory"}
	if m.Pin == nil {
		m.Pin = pin
	}
	if m.Take == nil {
		m.Take = take
	}
	salt := uint64(m.Clock.Now().UnixNano())
	var (
		taken  atomic.Int64 // bytes that somebody wants to fill
		next   atomic.Uint64
		wrong  atomic.Int64
		faults faults
		lock   sync.Mutex
		parts  [][]uint64
		all    sync.WaitGroup
	)
	tried := int64(0)
	end := m.Clock.Now().Add(m.Fill)
	turn := newBarrier(len(m.CPUs), func(pass int) {
		if m.Between != nil {
			m.Between(pass, parts)
		}
	})
	for _, cpu := range m.CPUs {
		all.Go(func() {
			runtime.LockOSThread()
			_ = m.Pin(cpu) // memory that is far away is memory all the same
			var mine []block
			for ctx.Err() == nil && (len(mine) == 0 || m.Clock.Now().Before(end)) && taken.Add(blockWords*8) <= m.Bytes {
				w, free, err := m.Take(blockWords)
				if err != nil {
					break
				}
				b := block{w, next.Add(uint64(len(w))) - uint64(len(w)), free}
				for i := range w {
					w[i] = pattern(0, salt, b.first+uint64(i))
				}
				mine = append(mine, b)
				lock.Lock()
				parts, tried = append(parts, w), tried+int64(len(w))*8
				lock.Unlock()
			}
			turn.wait()
			for pass := 1; pass <= passes; pass++ {
				for _, b := range mine {
					if ctx.Err() != nil {
						break
					}
					wrong.Add(b.pass(pass, salt, &faults))
				}
				turn.wait()
			}
			for _, b := range mine {
				b.free()
			}
		})
	}
	all.Wait()
	switch {
	case wrong.Load() > 0:
		step.Check = fmt.Sprintf("FAILED: %d words of %s did not hold what was written: %s", wrong.Load(), amount(tried), list(faults.texts()))
	case ctx.Err() != nil:
		step.Check = "FAILED: ended before it was tried"
	case tried == 0:
		step.Check = "FAILED: there is no free memory to try"
	default:
		step.OK = true
		step.Check = fmt.Sprintf("%s of %s written and read back with %d patterns, every word right", amount(tried), amount(m.Total), passes)
	}
	return step
}

// pass checks what the pass before wrote, and writes the next pattern. The number of
// words that were wrong is returned.
func (b block) pass(pass int, salt uint64, f *faults) int64 {
	var wrong int64
	for i, got := range b.words {
		if want := pattern(pass-1, salt, b.first+uint64(i)); got != want {
			wrong++
			f.add(&b.words[i], want, got)
		}
		if pass < passes {
			b.words[i] = pattern(pass, salt, b.first+uint64(i))
		}
	}
	return wrong
}

func amount(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }
