package image

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	muster "github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
)

// Progress reports how far a build is.
type Progress struct {
	Image   string        // name of the recipe
	Stage   string        // lists, download, unpack, install, ..., compress, publish
	Elapsed time.Duration // since the build began
	// ETA is the time that is left, from earlier builds of the same recipe; 0
	// when there are none to tell from.
	ETA time.Duration
}

// StageTime is how long a stage took.
type StageTime struct {
	Stage string          `json:"stage"`
	Took  muster.Duration `json:"took_seconds"`
}

// stages follows a build from stage to stage.
type stages struct {
	mu      sync.Mutex
	clock   muster.Clock
	image   string
	report  func(Progress)
	history map[string][]muster.Duration
	began   time.Time
	since   time.Time
	current string
	done    []StageTime
	stop    chan struct{}
	stopped sync.WaitGroup
}

// follow begins to follow a build. report may be nil; it is called from several
// goroutines, one call at a time, at each stage and once a second.
func (s *Store) follow(image string, report func(Progress)) *stages {
	t := &stages{clock: s.clock, image: image, report: report, history: s.timings()[image], began: s.clock.Now(), stop: make(chan struct{})}
	t.since = t.began
	if report != nil {
		t.stopped.Go(func() {
			for {
				select {
				case <-t.stop:
					return
				case <-t.clock.After(time.Second):
					t.tell()
				}
			}
		})
	}
	return t
}

// enter begins a stage and ends the one before.
func (t *stages) enter(stage string) {
	t.mu.Lock()
	t.leave()
	t.current = stage
	t.mu.Unlock()
	t.tell()
}

func (t *stages) leave() {
	now := t.clock.Now()
	if t.current != "" {
		t.done = append(t.done, StageTime{t.current, muster.Duration(now.Sub(t.since))})
	}
	t.since, t.current = now, ""
}

func (t *stages) tell() {
	if t.report == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == "" {
		return
	}
	now := t.clock.Now()
	t.report(Progress{Image: t.image, Stage: t.current, Elapsed: now.Sub(t.began), ETA: t.left(now)})
}

// left is the sum of the medians of the stages to come and of what the current
// one usually still takes.
func (t *stages) left(now time.Time) time.Duration {
	var sum time.Duration
	for stage, took := range t.history {
		usual := median(took)
		switch {
		case stage == t.current:
			sum += max(0, usual-now.Sub(t.since))
		case !slices.ContainsFunc(t.done, func(d StageTime) bool { return d.Stage == stage }):
			sum += usual
		}
	}
	return sum
}

// end ends the last stage and reports how long each took.
func (t *stages) end() []StageTime {
	t.mu.Lock()
	t.leave()
	done := t.done
	t.mu.Unlock()
	select {
	case <-t.stop:
	default:
		close(t.stop)
	}
	t.stopped.Wait()
	return done
}

func median(d []muster.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d))
	return time.Duration(s[len(s)/2])
}

// timings are the last few durations of each stage of each recipe, as they are written
// down.
type timings struct {
	Took map[string]map[string][]muster.Duration `json:"took_seconds"`
}

const timingsDoc document.Kind[timings] = "build-times/1"

func (s *Store) timings() map[string]map[string][]muster.Duration {
	path := filepath.Join(s.dir, "timings.json")
	var t timings
	data, err := os.ReadFile(path)
	if err == nil {
		t, err = timingsDoc.Decode(path, data)
	}
	if err != nil || t.Took == nil {
		return map[string]map[string][]muster.Duration{} // only ETAs are lost
	}
	return t.Took
}

// learn adds a finished build to the timings.
func (s *Store) learn(image string, done []StageTime) {
	const remembered = 5
	unlock, err := s.lock("timings")
	if err != nil {
		return
	}
	defer unlock()
	all := s.timings()
	stages := map[string][]muster.Duration{}
	for _, d := range done {
		old := all[image][d.Stage]
		stages[d.Stage] = append(old[max(0, len(old)-remembered+1):], d.Took)
	}
	all[image] = stages // stages that are no more are forgotten
	data, err := timingsDoc.Encode(&timings{all})
	if err == nil {
		err = atomicfile.ReplaceVolatile(filepath.Join(s.dir, "timings.json"), data, 0o600)
	}
	if err != nil {
		s.log.Warn("saving build times failed", "error", err)
	}
}
