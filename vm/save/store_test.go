package save_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/save"
)

func sha(b []byte) [32]byte { return sha256.Sum256(b) }

func whole() error { return nil }

func TestStore(t *testing.T) {
	t.Parallel()
	s := &save.Store{Dir: filepath.Join(t.TempDir(), "states")}
	key, err := save.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("what is in memory ", 20000)
	st, err := s.Write("c-1.n01", key.Recipient(), strings.NewReader(text), whole)
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string, st save.State) (string, error) {
		var b bytes.Buffer
		err := s.Read(name, st, key, &b)
		return b.String(), err
	}
	if got, err := read("c-1.n01", st); err != nil || got != text {
		t.Error(len(got), err)
	}
	info, err := os.Stat(filepath.Join(s.Dir, "c-1.n01.state"))
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != st.Size {
		t.Error(info, err)
	}
	// Another's state under this name, and this one with another's key.
	other, _ := save.NewKey()
	if err := s.Read("c-1.n01", st, other, &bytes.Buffer{}); muster.CodeOf(err) != muster.ECorrupt {
		t.Error(err)
	}
	for _, name := range []string{"../n01", "", "A", strings.Repeat("a", 200)} {
		if _, err := s.Write(name, key.Recipient(), strings.NewReader(text), whole); err == nil {
			t.Errorf("%q is a name", name)
		}
	}
	// One that was not whole is not kept, nor the one before.
	if _, err := s.Write("c-1.n01", key.Recipient(), strings.NewReader("half"), func() error { return errors.New("cut short") }); err == nil {
		t.Error("kept")
	}
	if err := s.Verify("c-1.n01", st); err == nil {
		t.Error("what was to be replaced is whole")
	}
	if used, err := s.Used(); used != 0 || err != nil {
		t.Error(used, err)
	}
}

// A quota, or a disk, that has no room refuses before anything is written.
func TestRoom(t *testing.T) {
	t.Parallel()
	s := &save.Store{Dir: t.TempDir(), Quota: 1 << 20}
	key, _ := save.NewKey()
	if err := s.Room(1 << 20); err != nil {
		t.Error(err)
	}
	st, err := s.Write("c-1.n01", key.Recipient(), bytes.NewReader(make([]byte, 600<<10)), whole)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Room(600 << 10); muster.CodeOf(err) != muster.EConflict {
		t.Error(err)
	}
	// What is promised to one is not there for others, and is once it is settled; what is written of it counts once.
	s.Quota = 2 << 20
	if err := s.Promise("c-1.", 1<<20); err != nil {
		t.Error(err)
	}
	if err := s.Promise("c-2.", 1100<<10); muster.CodeOf(err) != muster.EConflict {
		t.Error(err)
	}
	if err := s.Promise("c-2.", 900<<10); err != nil {
		t.Error(err)
	}
	if err := s.Promise("c-2.", 900<<10); err != nil {
		t.Error("its own promise stands in its way:", err)
	}
	s.Settle("c-2.")
	if err := s.Room(1 << 20); err != nil {
		t.Error(err)
	}
	s.Quota = 0
	if err := s.Room(1 << 60); muster.CodeOf(err) != muster.EConflict {
		t.Error(err)
	}
	for range 2 {
		r, err := s.Erase("c-1.n01", time.Unix(1e9, 0))
		if err != nil || !r.Steps[0].OK || r.Bytes != 0 && r.Bytes != st.Size {
			t.Errorf("%+v %v", r, err)
		}
	}
}
