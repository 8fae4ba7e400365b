package providertest

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// ShareTarget is where machines of the suite find their share.
const ShareTarget = "/suite"

// fenced fences a machine and looks at the proof.
func (s *suite) fenced(t *testing.T, id muster.MachineID) {
	t.Helper()
	r, err := s.p.Fence(s.context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	if r.Machine != id || !r.Proven || r.At.IsZero() || len(r.Steps) == 0 {
		t.Errorf("record %+v", r)
	}
	for _, step := range r.Steps {
		if !step.OK || step.What == "" || step.Check == "" {
			t.Errorf("step %+v", step)
		}
	}
}

func (s *suite) fenceFrozen(t *testing.T) {
	if s.Freeze == nil {
		t.Skip("this driver's machines cannot be frozen")
	}
	w := s.boot(t, 0)
	s.Freeze(t, s.p, w.Machine)
	// It stands still, and is on: that is what a provider can know.
	if seen := s.look(t, w.Machine); seen.State != provider.StateRunning {
		t.Errorf("frozen, and %s", seen.State)
	}
	s.fenced(t, w.Machine)
	if seen := s.look(t, w.Machine); seen.State != provider.StateOff {
		t.Errorf("fenced, and %s", seen.State)
	}
	w = s.boot(t, 0) // nothing of it stays frozen
	s.off(t, w.Machine)
}

// fenceBooting fences while the machine is being started: whichever comes
// first, a boot that the fence met does not survive it.
func (s *suite) fenceBooting(t *testing.T) {
	s.ensureNetwork(t)
	for range 3 {
		w := s.want(0)
		ended := make(chan struct{})
		ctx := s.context(t)
		go func() {
			defer close(ended)
			s.p.Ensure(ctx, []provider.DesiredState{w})
		}()
		time.Sleep(3 * time.Millisecond)
		s.fenced(t, w.Machine)
		<-ended
		// It may have begun only after the fence was over.
		if seen := s.look(t, w.Machine); seen.State == provider.StateStuck || seen.State == provider.StateUnknown {
			t.Errorf("booted and fenced at once, and %s: %v", seen.State, seen.Err)
		}
		s.fenced(t, w.Machine)
	}
}

func (s *suite) test(t *testing.T) {
	w := s.boot(t, 0)
	if r, err := s.p.Test(s.context(t), w.Machine, 1); err == nil {
		t.Errorf("a running machine was tested: %+v", r)
	}
	if seen := s.look(t, w.Machine); seen.State != provider.StateRunning {
		t.Errorf("testing it in vain made it %s", seen.State)
	}
	s.off(t, w.Machine)
	try := func(want bool) {
		t.Helper()
		r, err := s.p.Test(s.context(t), w.Machine, 1)
		if err != nil {
			t.Fatal(err)
		}
		good := len(r.Steps) > 0
		for _, step := range r.Steps {
			good = good && step.OK
			if step.What == "" || step.Check == "" {
				t.Errorf("step %+v", step)
			}
		}
		if r.Machine != w.Machine || r.At.IsZero() || r.Passed != want || good != want {
			t.Errorf("passed is not %v: %+v", want, r)
		}
		if seen := s.look(t, w.Machine); seen.State != provider.StateOff {
			t.Errorf("tested, and %s", seen.State)
		}
	}
	try(true)
	if s.Spoil != nil {
		undo := s.Spoil(t, s.p, w.Machine)
		try(false)
		undo()
		try(true)
	}
	if _, err := s.p.Clean(s.context(t), w.Machine); err != nil {
		t.Error("a tested machine cannot be cleaned:", err)
	}
	if _, err := s.p.Test(s.context(t), "no-such-machine", 1); err == nil {
		t.Error("a machine that does not exist was tested")
	}
	w = s.boot(t, 0)
	s.off(t, w.Machine)
}

// heard reads until want comes.
func (s *suite) heard(t *testing.T, c io.Reader, want string) {
	t.Helper()
	found := make(chan string, 1)
	go func() {
		var text strings.Builder
		buf := make([]byte, 1024)
		for !strings.Contains(text.String(), want) {
			n, err := c.Read(buf)
			text.Write(buf[:n])
			if err != nil {
				break
			}
		}
		found <- text.String()
	}()
	select {
	case text := <-found:
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	case <-time.After(s.Patience):
		t.Errorf("no %q comes", want)
	}
}

func (s *suite) console(t *testing.T) {
	w := s.boot(t, 0)
	c, err := s.p.Console(s.context(t), w.Machine, false)
	if err != nil {
		t.Fatal(err)
	}
	s.heard(t, c, w.Boot.Hostname)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.p.Console(s.context(t), "no-such-machine", false); err == nil {
		t.Error("a machine that does not exist has a console")
	}
	s.off(t, w.Machine)
	if _, err := s.p.Clean(s.context(t), w.Machine); err != nil {
		t.Fatal(err)
	}
	if c, err = s.p.Console(s.context(t), w.Machine, false); err == nil {
		buf := make([]byte, 1024)
		got := make(chan string, 1)
		go func() {
			n, _ := c.Read(buf)
			got <- string(buf[:n])
		}()
		select {
		case text := <-got:
			if strings.Contains(text, w.Boot.Hostname) {
				t.Errorf("a clean machine still says %q", text)
			}
		case <-time.After(50 * time.Millisecond):
		}
		_ = c.Close()
	}
}

func (s *suite) shell(t *testing.T) {
	if _, err := s.p.Console(s.context(t), s.ids[0], true); err == nil {
		t.Error("there is a shell in a machine that is off")
	}
	if s.NoShell {
		t.Skip("this driver has no shells")
	}
	w := s.boot(t, 0)
	c, err := s.p.Console(s.context(t), w.Machine, true)
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := c.(interface{ Resize(columns, rows int) error }); !ok || r.Resize(100, 30) != nil {
		t.Error("the shell takes no size")
	}
	if _, err := io.WriteString(c, "echo two'' words\n"); err != nil {
		t.Fatal(err)
	}
	s.heard(t, c, "words")
	// A fence ends it with the machine.
	s.fenced(t, w.Machine)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, c)
	}()
	select {
	case <-over:
	case <-time.After(s.Patience):
		t.Error("the shell outlives its machine")
	}
	_ = c.Close()
}

// shares gives two nodes of one cluster different directories: a head has what
// others have not.
func (s *suite) shares(t *testing.T) {
	if s.Share == "" {
		t.Skip("this driver's machines mount nothing")
	}
	s.ensureNetwork(t)
	wants := []provider.DesiredState{s.want(0), s.want(1)}
	dirs := []string{t.TempDir(), t.TempDir()}
	for i := range wants {
		wants[i].Boot.Shares = append(wants[i].Boot.Shares, provider.BindMount{Path: dirs[i], Target: ShareTarget})
	}
	s.ensure(t, wants...)
	for i, dir := range dirs {
		var text string
		for end := time.Now().Add(s.Patience); text == "" && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			b, _ := os.ReadFile(filepath.Join(dir, s.Share))
			text = strings.TrimSpace(string(b))
		}
		if text != wants[i].Boot.Hostname {
			t.Errorf("node %s wrote %q into its share", wants[i].Boot.Hostname, text)
		}
	}
}
