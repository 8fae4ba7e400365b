package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-hpc/muster"
)

// Found is a machine of a state directory that runs on this host, as the host and the
// notes beside it tell, whatever the store knows.
type Found struct {
	Machine muster.MachineID
	Cluster muster.ClusterID // "" when no note tells
	Attempt int64
	Epoch   int64 // of the records that had it started; 0 when no note tells
	// Trial: it runs to be tried, for nobody.
	Trial bool
}

// FindRunning lists the machines of the state directory dir that run now. It makes and
// changes nothing. Instance is the name under which they run; "" when that is lost: then
// only notes of living processes tell.
func FindRunning(dir, instance string) ([]Found, error) {
	notes, err := readNotes(filepath.Join(dir, "machines"))
	if err != nil {
		return nil, err
	}
	running := map[muster.MachineID]bool{}
	if instance != "" {
		if err := populatedGroups("/proc/self/mountinfo", "muster-"+instance, running); err != nil {
			return nil, err
		}
	}
	for id, r := range notes {
		if r.PID > 1 && r.Started != 0 {
			if at, err := startTime(r.PID); err == nil && at == r.Started {
				running[id] = true
			}
		}
	}
	var out []Found
	for id := range running {
		f := Found{Machine: id}
		if r := notes[id]; r != nil {
			f.Cluster, f.Attempt, f.Epoch, f.Trial = r.Cluster, r.Attempt, r.Epoch, r.Trial
		}
		out = append(out, f)
	}
	return out, nil
}

// Instances lists the machines of each instance that has processes on this host now.
func Instances() (map[string][]Found, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	g, err := findGroups(b, "muster-")
	if err != nil {
		return nil, err
	}
	root := filepath.Dir(g.unified)
	names := map[string]bool{}
	for _, pattern := range []string{filepath.Join(root, "muster-*"), filepath.Join(root, scopeSlice, "muster-*.scope")} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(p), "muster-"), ".scope")
			if !strings.HasPrefix(name, "work-") { // what a server runs itself
				names[name] = true
			}
		}
	}
	out := map[string][]Found{}
	for name := range names {
		running := map[muster.MachineID]bool{}
		if err := populatedGroups("/proc/self/mountinfo", "muster-"+name, running); err != nil {
			return nil, err
		}
		for id := range running {
			out[name] = append(out[name], Found{Machine: id})
		}
	}
	return out, nil
}

// readNotes reads what an earlier server noted of its machines. A note that cannot be
// read counts as one that says nothing but the name; one of another version is an error.
func readNotes(dir string) (map[muster.MachineID]*record, error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[muster.MachineID]*record{}
	for _, e := range list {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !e.Type().IsRegular() {
			continue
		}
		var r record
		path := filepath.Join(dir, e.Name())
		if b, err := os.ReadFile(path); err == nil {
			if r, err = recordDoc.Decode(path, b); muster.CodeOf(err) == muster.EConflict {
				return nil, err
			}
		}
		out[muster.MachineID(name)] = &r
	}
	return out, nil
}

// populatedGroups adds the machines that have processes in the instance's control groups.
func populatedGroups(mountinfo, name string, running map[muster.MachineID]bool) error {
	b, err := os.ReadFile(mountinfo)
	if err != nil {
		return err
	}
	g, err := findGroups(b, name)
	if err != nil {
		return err
	}
	for _, dir := range []string{g.unified, filepath.Join(filepath.Dir(g.unified), scopeSlice, name+".scope")} {
		list, err := os.ReadDir(dir)
		if err != nil {
			continue // nothing of this instance is there
		}
		in := &groups{unified: dir}
		for _, e := range list {
			if !e.IsDir() || e.Name() == holdGroup {
				continue
			}
			if alive, err := in.populated(e.Name()); err != nil || alive {
				running[muster.MachineID(e.Name())] = true
			}
		}
	}
	return nil
}
