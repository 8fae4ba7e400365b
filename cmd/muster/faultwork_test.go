package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// work is what a cluster does while something breaks: an MPI job on nodes that
// are not hit, a batch job on one that is, and a user who keeps submitting.
type work struct {
	victim    string // node of the batch job; "" for none
	submitted *submitter
	held      string // a batch job that waits, submitted on the head
}

// steadyTime is how long the MPI job runs: through the fault, in most cases.
const steadyTime = 25

func (s *faultSite) startWork(f failure) *work {
	w := &work{}
	if f.victims[0] == "head" {
		// An srun on the head dies with it, and must not hold its node for ever;
		// a job with a script stays, wherever it was submitted.
		s.exec("head", "(setsid nohup srun -J gone -w n04 sleep 3600 >gone.out 2>&1 </dev/null &)")
		w.held = strings.TrimSpace(s.exec("head", "sbatch --parsable --hold -o /dev/null --wrap true"))
		s.within(4*time.Minute, "the srun on the head runs", func() error { return s.runs("gone", true) })
		time.Sleep(stateSaved) // so that the next head knows of them
	}
	// Started on a node that stays, and left alone there: neither the head nor
	// the server carries the session.
	s.exec("n01", fmt.Sprintf(`(setsid nohup sh -c 'srun -N2 -w n01,n02 --ntasks-per-node=1 ./steady %d; echo exit $?' >steady.out 2>&1 </dev/null &)`, steadyTime))
	if f.victims[0] == "head" {
		w.submitted = s.submit()
		// Accounting comes some seconds after the cluster: what was not written
		// down before the head died cannot be there after.
		s.within(4*time.Minute, "accounting knows the first jobs", func() error {
			out, err := s.tryExec(10*time.Second, "head", "sacct -X -n -P -o JobID")
			if err == nil && len(strings.Fields(out)) < 2 {
				err = fmt.Errorf("sacct: %q", out)
			}
			return err
		})
	} else {
		w.victim = f.victims[0]
		s.exec("head", fmt.Sprintf(`cat > job.sh <<'X'
#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --requeue --open-mode=append --output=job.out
echo "begin $(hostname) ${SLURM_RESTART_COUNT:-0}"
sleep 12
echo "end ${SLURM_RESTART_COUNT:-0}"
X
sbatch -w %s job.sh`, w.victim))
		s.within(4*time.Minute, "the batch job begins", func() error {
			out, err := s.tryExec(10*time.Second, "head", "cat job.out")
			if err == nil && !strings.Contains(out, "begin") {
				err = fmt.Errorf("job.out: %q", out)
			}
			return err
		})
	}
	s.within(4*time.Minute, "the MPI job runs", func() error { return s.runs("steady", true) })
	return w
}

// runs reports whether a job of that name runs, if it should, or is not there.
func (s *faultSite) runs(name string, should bool) error {
	states := ""
	if should {
		states = " -t R"
	}
	out, err := s.tryExec(10*time.Second, "head", "squeue -h -o %j"+states)
	if err == nil && slices.Contains(strings.Fields(out), name) != should {
		err = fmt.Errorf("squeue: %q", out)
	}
	return err
}

// end waits for all work and says what became of the jobs.
// broken is when the fault began and when it was complete.
func (w *work) end(s *faultSite, f failure, broken [2]time.Time, killed bool) string {
	s.t.Helper()
	var steady string
	s.within(4*time.Minute, "the MPI job on other nodes ends", func() (err error) {
		if steady, err = s.tryExec(10*time.Second, "n01", "cat steady.out"); err == nil && !strings.Contains(steady, "exit") {
			err = fmt.Errorf("steady.out: %q", steady)
		}
		return err
	})
	if !strings.Contains(steady, ": ok") || !strings.Contains(steady, "exit 0") {
		s.t.Errorf("the MPI job on other nodes: %q", steady)
	}
	if w.submitted != nil {
		s.within(4*time.Minute, "the job whose srun was lost with the head ends", func() error { return s.runs("gone", false) })
		if out := s.exec("head", "squeue -h -o %T -j "+w.held); strings.TrimSpace(out) != "PENDING" {
			s.t.Errorf("the batch job %s that was submitted on the head is %q", w.held, out)
		}
		if out := s.exec("head", "cat /etc/motd.d/20-muster"); !strings.Contains(out, "srun or salloc on head") && f.replaced {
			s.t.Errorf("nobody says why a job was ended: %q", out)
		}
		s.exec("head", "scancel "+w.held)
		known, lost := w.submitted.stop(s, broken)
		return fmt.Sprintf("%d acknowledged jobs are there, %d of the last five seconds are not; the srun on it is ended; others do not notice", known, lost)
	}
	var out string
	s.within(4*time.Minute, "the batch job ends", func() (err error) {
		if out, err = s.tryExec(10*time.Second, "head", "cat job.out"); err == nil && !strings.Contains(out, "\nend") {
			err = fmt.Errorf("job.out: %q", out)
		}
		return err
	})
	again := strings.Contains(out, "end 1")
	switch {
	case f.keeps && again:
		s.t.Errorf("the job on %s was started again: %q", w.victim, out)
	case !f.keeps && !again && killed:
		// The server came back late: the job ended meanwhile, and the scheduler
		// heard of it in time.
		return "ended in time; others do not notice"
	case !f.keeps && !again:
		s.t.Errorf("the job on %s was not started again exactly once: %q", w.victim, out)
	}
	if again {
		return "queued again and run; others do not notice"
	}
	return "go on"
}

// submitter is a user who submits one small job after the other from a node
// that stays, and remembers every number that she was told.
type submitter struct {
	end  chan struct{}
	done sync.WaitGroup
	jobs []acknowledged
}

// acknowledged is a job whose number she was told. The head gave it at some time
// between: on its way to her it takes a part of a second.
type acknowledged struct {
	id          string
	asked, told time.Time
}

// clockTime is how the test tells of moments, as the logs beside it do.
const clockTime = "15:04:05.000"

// stateSaved is how long Slurm's controller may keep a job in memory only: it
// writes its queue down every five seconds.
const stateSaved = 6 * time.Second

func (s *faultSite) submit() *submitter {
	u := &submitter{end: make(chan struct{})}
	u.done.Go(func() {
		for {
			select {
			case <-u.end:
				return
			default:
			}
			// A submission without an answer may or may not count.
			asked := time.Now()
			out, err := s.tryExec(30*time.Second, "n01", "timeout 20 sbatch --parsable -o /dev/null --wrap true")
			if err == nil {
				u.jobs = append(u.jobs, acknowledged{strings.TrimSpace(out), asked, time.Now()})
			}
			time.Sleep(300 * time.Millisecond)
		}
	})
	return u
}

// stop ends the submissions and looks for every job that was acknowledged:
// accounting knows it, or the queue does. But for those that the head may have
// acknowledged in the last seconds before it died.
func (u *submitter) stop(s *faultSite, broken [2]time.Time) (known, lost int) {
	s.t.Helper()
	close(u.end)
	u.done.Wait()
	if len(u.jobs) < 2 {
		s.t.Errorf("only %d jobs were acknowledged: this proves little", len(u.jobs))
	}
	s.within(4*time.Minute, "every acknowledged job is known", func() error {
		known, lost = 0, 0
		out, err := s.tryExec(20*time.Second, "head", "squeue -h -t all -o %i; sacct -X -n -P -o JobID")
		if err != nil {
			return err
		}
		there := strings.Fields(out)
		for _, j := range u.jobs {
			switch {
			case slices.Contains(there, j.id):
				known++
			case j.asked.Before(broken[1]) && j.told.After(broken[0].Add(-stateSaved)):
				lost++
			default:
				return fmt.Errorf("job %s is neither in the queue nor in the accounting: it was asked for at %s and acknowledged at %s, the fault began at %s and was complete at %s",
					j.id, j.asked.Format(clockTime), j.told.Format(clockTime), broken[0].Format(clockTime), broken[1].Format(clockTime))
			}
		}
		return nil
	})
	return known, lost
}
