package measure

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

func (j *job) dir() string { return filepath.Join(j.r.c.Dir, j.id) }

// output is where the outcome of a launch is written while it comes.
func (j *job) output(launch string) string { return filepath.Join(j.dir(), "new-"+launch) }

// kept is where what a step printed is found again.
func (j *job) kept(st step) string { return filepath.Join(j.dir(), st.name+".jsonl") }

// failedAt is there if a step has no outcome that counts.
func (j *job) failedAt(st step) string { return filepath.Join(j.dir(), st.name+".failed") }

// found counts the first steps that have an outcome, and how many of them
// failed: the files count, and the record only as far as they are there.
func (j *job) found(steps []step, done int) (have, failed int) {
	for i := 0; i < min(done, len(steps)); i++ {
		if _, err := os.Stat(j.kept(steps[i])); err == nil {
			have++
			continue
		}
		if _, err := os.Stat(j.failedAt(steps[i])); err != nil {
			return have, failed
		}
		have++
		failed++
	}
	return have, failed
}

// keep writes what comes to a file that is complete or not there.
func keep(path string, from io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}
