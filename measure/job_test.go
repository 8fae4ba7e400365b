package measure

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
	"github.com/muster-hpc/muster/wire"
)

// workshop is a job whose agent is played by the test.
type workshop struct {
	t    *testing.T
	r    *Runner
	j    *job
	s    *subject
	step step
}

// good is what a step that reads conditions may print.
const good = `{"host":"n01"}` + "\n"

// inWorkshop runs f in pretended time.
func inWorkshop(t *testing.T, f func(*workshop)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), filepath.Join(dir, "muster.db"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		c := storetest.NewCluster("cfd", "alice", "sea")
		c.Measurement = &muster.Measurement{ID: "ms-1", Phase: muster.MeasurementRunning, Level: muster.ValidateQuick, Of: muster.DigestOfNodes(nil)}
		if err := db.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return tx.PutCluster(c, "") }); err != nil {
			t.Fatal(err)
		}
		r, err := New(Config{
			Store: db, Dir: filepath.Join(dir, "measuring"), Sign: func(muster.Certificate) ([]byte, error) { return nil, nil },
			Admit: func(context.Context, muster.ClusterID, time.Duration) (string, string, error) {
				return "key", "cert", nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		w := &workshop{t: t, r: r, step: step{name: "000-conditions"}}
		w.j = &job{r: r, cluster: c.ID, id: "ms-1", heard: make(chan heard, 1)}
		w.s = &subject{m: *c.Measurement, cluster: c, launcher: "n01", nodes: []muster.Node{{Name: "n01"}}, machines: make([]muster.Machine, 1), places: make([]analysis.Place, 1), neighbours: make([]int, 1)}
		r.open[c.ID] = w.j
		if err := os.MkdirAll(w.j.dir(), 0o700); err != nil {
			t.Fatal(err)
		}
		f(w)
	})
}

// begin makes the step; what it came to is read from the channel.
func (w *workshop) begin() <-chan bool {
	done := make(chan bool, 1)
	go func() {
		ok, err := w.j.step(w.t.Context(), w.s, w.step)
		if err != nil {
			w.t.Error(err)
		}
		done <- ok
	}()
	synctest.Wait()
	return done
}

// order is what the agent is to run now.
func (w *workshop) order() *wire.LaunchOrder {
	w.t.Helper()
	synctest.Wait()
	o := w.r.Launch(w.j.cluster, "n01")
	if o == nil {
		w.t.Fatal("there is no order")
	}
	return o
}

// answer is what the agent says of a launch.
func (w *workshop) answer(id string, exit int, printed string) error {
	end := wire.LaunchEnd{ID: id, Exit: exit}
	if exit != 0 {
		end.Error = "it failed: " + id
	}
	_, err := w.r.Launched(w.t.Context(), pki.NodeIdentity{Cluster: w.j.cluster, Node: "n01"}, end, strings.NewReader(printed))
	synctest.Wait()
	return err
}

// files are what is kept.
func (w *workshop) files() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	list, err := os.ReadDir(w.j.dir())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range list {
		b, err := os.ReadFile(filepath.Join(w.j.dir(), d.Name()))
		if err != nil {
			w.t.Fatal(err)
		}
		out[d.Name()] = string(b)
	}
	return out
}

// A launch that fails, or prints what cannot be believed, is made once more. Where
// that fails, too, nothing of it counts, and why is kept and told.
func TestTwoTries(t *testing.T) {
	t.Parallel()
	type try struct {
		exit    int
		printed string
	}
	for name, c := range map[string]struct {
		first, second try
		kept          string // "": it failed
		why           string
	}{
		"fails once":        {try{1, "half"}, try{0, good}, good, ""},
		"nonsense once":     {try{0, "nonsense\n"}, try{0, good}, good, ""},
		"fails twice":       {try{1, good}, try{3, good}, "", "it failed: ms-1-000-conditions-1"},
		"nonsense at last":  {try{1, good}, try{0, "nonsense\n"}, "", ""},
		"failure at last":   {try{0, "nonsense\n"}, try{1, good}, "", "it failed: ms-1-000-conditions-1"},
		"cut off, and then": {try{0, good[:5]}, try{0, good}, good, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorkshop(t, func(w *workshop) {
				done := w.begin()
				for i, try := range []try{c.first, c.second} {
					o := w.order()
					if want := fmt.Sprintf("ms-1-000-conditions-%d", i); o.ID != want {
						t.Fatalf("order %s, want %s", o.ID, want)
					}
					if err := w.answer(o.ID, try.exit, try.printed); err != nil {
						t.Fatal(err)
					}
				}
				if ok := <-done; ok != (c.kept != "") {
					t.Errorf("it counts: %v", ok)
				}
				files, steps := w.files(), []step{w.step}
				said, err := w.j.read(steps)
				if err != nil || len(files) != 1 {
					t.Fatalf("%v, %v", files, err)
				}
				have, failed := w.j.found(steps, 1)
				if c.kept != "" {
					if files["000-conditions.jsonl"] != c.kept || said.failed != 0 || have != 1 || failed != 0 {
						t.Errorf("%v, %d failed, found %d and %d", files, said.failed, have, failed)
					}
					return
				}
				if !strings.Contains(files["000-conditions.failed"], c.why) || !strings.Contains(w.j.lastFailure(steps), c.why) || said.failed != 1 || have != 1 || failed != 1 {
					t.Errorf("%v, %d failed, found %d and %d", files, said.failed, have, failed)
				}
				f, err := w.s.judge(said, past{})
				if err != nil || !slices.ContainsFunc(f.omitted, func(o muster.Omission) bool { return o.What == "launches" && strings.HasPrefix(o.Text, "1 ") }) {
					t.Errorf("%+v, %v", f.omitted, err)
				}
			})
		})
	}
}

// What an agent says too late of a launch that was given up is refused, and its next
// word counts for the next launch only.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	inWorkshop(t, func(w *workshop) {
		done := w.begin()
		first := w.order()
		time.Sleep(time.Duration(first.Limit) + w.r.c.Grace + time.Second)
		second := w.order()
		if second.ID == first.ID || second.Cancel {
			t.Fatalf("%+v", second)
		}
		if err := w.answer(first.ID, 0, `{"host":"stale"}`+"\n"); muster.CodeOf(err) != muster.EConflict {
			t.Errorf("a late answer: %v", err)
		}
		select {
		case <-done:
			t.Fatal("it counted")
		default:
		}
		if err := w.answer(second.ID, 0, good); err != nil {
			t.Error(err)
		}
		if ok, files := <-done, w.files(); !ok || len(files) != 1 || files["000-conditions.jsonl"] != good {
			t.Errorf("%v, %v", ok, files)
		}
	})
}

// Where an agent answers in the very moment in which its launch is given up, what it
// said waits for whoever asks next: it must not count for that one.
func TestStaleAnswer(t *testing.T) {
	t.Parallel()
	inWorkshop(t, func(w *workshop) {
		stale := filepath.Join(w.j.dir(), "new-ms-1-001-alone-0")
		if err := keep(stale, strings.NewReader(good)); err != nil {
			t.Fatal(err)
		}
		w.j.heard <- heard{end: wire.LaunchEnd{ID: "ms-1-001-alone-0"}, path: stale}
		done := w.begin()
		select {
		case <-done:
			t.Fatal("it counted")
		default:
		}
		if err := w.answer(w.order().ID, 0, `{"host":"n02"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		if ok, files := <-done, w.files(); !ok || len(files) != 1 || !strings.Contains(files["000-conditions.jsonl"], "n02") {
			t.Errorf("%v, %v", ok, files)
		}
	})
}

// An answer that is still coming in when its launch is given up is refused at its
// end, and leaves nothing.
func TestAnswerWhileGivenUp(t *testing.T) {
	t.Parallel()
	inWorkshop(t, func(w *workshop) {
		done := w.begin()
		first := w.order()
		in, out := io.Pipe()
		refused := make(chan error, 1)
		go func() {
			_, err := w.r.Launched(t.Context(), pki.NodeIdentity{Cluster: w.j.cluster, Node: "n01"}, wire.LaunchEnd{ID: first.ID}, in)
			refused <- err
		}()
		time.Sleep(time.Duration(first.Limit) + w.r.c.Grace + time.Second)
		second := w.order()
		if _, err := io.WriteString(out, `{"host":"stale"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		_ = out.Close()
		if err := <-refused; muster.CodeOf(err) != muster.EConflict {
			t.Errorf("%v", err)
		}
		if err := w.answer(second.ID, 0, good); err != nil {
			t.Fatal(err)
		}
		if ok, files := <-done, w.files(); !ok || len(files) != 1 || files["000-conditions.jsonl"] != good {
			t.Errorf("%v, %v", ok, files)
		}
	})
}
