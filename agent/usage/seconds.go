package usage

import (
	"os"
	"time"
)

// Processor samples only how busy the processors are, so cheaply that it can be asked
// each second while something else is measured. It is not safe for concurrent use.
type Processor struct{ s *Sampler }

// NewProcessor makes one for the machine whose tree is at root; "" is this one.
func NewProcessor(root string, now time.Time) *Processor {
	p := &Processor{New(root, now)}
	p.s.last = p.now(now)
	return p
}

// Sample is how many cores were busy in user mode and in the kernel, and waited for
// input and output, on average since the last one. Where that is too short ago to say
// it is not ok, and the next one is over both times.
func (p *Processor) Sample(now time.Time) (user, system, wait float64, ok bool) {
	s := p.s
	t := p.now(now)
	d := t.at.Sub(s.last.at).Seconds()
	if d < 0 { // the clock was set back
		s.last = t
	}
	if d < minSpan {
		return 0, 0, 0, false
	}
	is := ticks{user: rate(t.user, s.last.user, d), system: rate(t.system, s.last.system, d), wait: rate(t.wait, s.last.wait, d)}
	s.last = t
	// A process that was missed between two places comes back as a leap.
	if s.cores == 0 || is.user+is.system <= s.cores*slack {
		s.busy = is
	}
	return s.busy.user, s.busy.system, s.busy.wait, true
}

// now reads the times, and of processes only what they spent, if it must.
func (p *Processor) now(now time.Time) ticks {
	var spent processes
	if s := p.s; s.slice && len(s.read("sys/fs/cgroup/cpu.stat")) == 0 {
		spent = s.spent()
	}
	return p.s.processor(now, spent)
}

// spent sums the times of all processes.
func (s *Sampler) spent() processes {
	var p processes
	dir, err := os.Open(s.path("proc"))
	if err != nil {
		return p
	}
	defer func() { _ = dir.Close() }()
	for p.count < maxProcesses {
		names, err := dir.Readdirnames(256)
		for _, n := range names {
			if n == "" || n[0] < '1' || n[0] > '9' {
				continue
			}
			if st, ok := parsePID(s.readAt(int(dir.Fd()), n+"/stat")); ok {
				p.count++
				p.user, p.system = p.user+st.user, p.system+st.system
			}
		}
		if err != nil {
			break
		}
	}
	return p
}
