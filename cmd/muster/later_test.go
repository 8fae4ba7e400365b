package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/rogpeppe/go-internal/testscript"
)

// laterProgram is the server by a clock that is three hours ahead: these tests, under another name.
const laterProgram = "muster-later"

// ahead is a clock that is so much ahead of this computer's.
type ahead struct {
	muster.SystemClock
	by time.Duration
}

func (a ahead) Now() time.Time { return a.SystemClock.Now().Add(a.by) }

// isLater reports whether this process is to be that server, or one that it started.
func isLater() bool {
	self, err := os.Executable()
	return err == nil && filepath.Base(self) == laterProgram
}

// later: it is three hours later for the servers that are started from now on.
func later(ts *testscript.TestScript, _ bool, _ []string) {
	s := of(ts)
	self, err := os.Executable()
	ts.Check(err)
	b, err := os.ReadFile(self)
	ts.Check(err)
	program := filepath.Join(s.bin, laterProgram)
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		ts.Check(os.WriteFile(program, b, 0o755))
	}
	s.program = laterProgram
}
