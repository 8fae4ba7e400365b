package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/provider/local"
)

// instancesDir is where a host remembers, for as long as it has power, which state
// directory the machines of an instance belong to. Each file is named for an instance and
// holds a path. Nothing in a state directory says it once that directory is lost.
const instancesDir = "/run/muster/instances"

// hostInstances are the instances of which machines were cut from this host.
type hostInstances struct{ dir string }

// note remembers whose an instance is. It must be done before one of its machines runs.
func (h hostInstances) note(instance, state string) error {
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(h.dir, instance), []byte(state+"\n"), 0o600)
}

// forget is for an instance of which nothing runs any more.
func (h hostInstances) forget(instance string) error {
	err := os.Remove(filepath.Join(h.dir, instance))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// stateOf is the directory that an instance is of; "": nobody knows.
func (h hostInstances) stateOf(instance string) string {
	b, err := os.ReadFile(filepath.Join(h.dir, instance))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// of are the instances of a state directory.
func (h hostInstances) of(state string) []string {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		if h.stateOf(e.Name()) == state {
			list = append(list, e.Name())
		}
	}
	return list
}

// orphans refuses to cut machines from a host on which those of a directory run that is
// gone: they would have the same cores. Of directories that are gone with all they had it
// forgets the instances.
func (h hostInstances) orphans() error {
	running, err := local.Instances()
	if err != nil {
		return nil //nolint:nilerr // the provider reports why it cannot work here
	}
	for instance, machines := range running {
		state := h.stateOf(instance)
		if state == "" {
			continue // not of a server that writes it down
		}
		if _, err := os.Stat(state); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return muster.Errorf(muster.EConflict, "machines run here whose state directory %s is gone: %s", state, foundNames(machines)).Because(muster.ReasonUnknownMachines).
			WithHint("bring the directory back (`muster restore FILE --state %s`), or end them with `muster cleanup --state %s --yes`; nothing was started", state, state)
	}
	h.forgetGone(func(instance string) bool { return len(running[instance]) > 0 })
	return nil
}

// forgetGone forgets instances of which nothing runs and whose directories are gone.
func (h hostInstances) forgetGone(runs func(instance string) bool) {
	entries, _ := os.ReadDir(h.dir)
	for _, e := range entries {
		state := h.stateOf(e.Name())
		if _, err := os.Stat(state); state != "" && errors.Is(err, fs.ErrNotExist) && !runs(e.Name()) {
			_ = h.forget(e.Name()) // it harms nobody
		}
	}
}

// rival refuses an instance that another directory of this host has: both servers would
// take each other's machines for their own.
func (h hostInstances) rival(instance, state string) error {
	other := h.stateOf(instance)
	if other == "" || other == state {
		return nil
	}
	if s, err := readSite(other); err != nil || s == nil || s.Instance != instance {
		return nil //nolint:nilerr // that directory is gone, or another site's now
	}
	return muster.Errorf(muster.EConflict, "the machines of this site on this host are those of %s, and %s is a copy of it", other, state).Because(muster.ReasonOtherSite).
		WithHint("start the server with --state %s; or stop it for good and move that directory away; nothing was started", other)
}

// instancesOf are the names under which machines of a state directory may run: what it
// says itself, what the host remembers, and what the copies of its clusters say.
func instancesOf(dir string, s *site) []string {
	names := hostInstances{instancesDir}.of(dir)
	if s != nil {
		names = append(names, s.Instance)
	}
	copies, _ := readCopies(dir)
	for _, c := range copies {
		names = append(names, c.Instance)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(n string) bool { return n == "" || strings.ContainsAny(n, "/.") })
}

// findRunning lists the machines that run under these names, each once.
func findRunning(dir string, names []string) ([]local.Found, error) {
	if len(names) == 0 {
		names = []string{""} // only notes of living processes tell
	}
	var out []local.Found
	var errs []error
	for _, n := range names {
		list, err := local.FindRunning(dir, n)
		errs = append(errs, err)
		for _, f := range list {
			if !slices.ContainsFunc(out, func(o local.Found) bool { return o.Machine == f.Machine }) {
				out = append(out, f)
			}
		}
	}
	return out, errors.Join(errs...)
}

// remains is what shows that a directory without a store has served; "": nothing.
func remains(dir string) string {
	for _, path := range []string{filepath.Join("keys", "authority.pem"), filepath.Join("keys", "certificates.json")} {
		if !absent(filepath.Join(dir, path)) {
			return path
		}
	}
	for _, path := range []string{copiesDir, "machines", filepath.Join("metal", "boots")} {
		if list, err := filepath.Glob(filepath.Join(dir, path, "*.json")); err == nil && len(list) > 0 {
			return path
		}
	}
	if list, err := os.ReadDir(filepath.Join(dir, "volumes")); err == nil && len(list) > 0 {
		return "volumes"
	}
	return ""
}
