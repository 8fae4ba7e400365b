// Package fault breaks local machines from outside, as bad hardware does: for
// tests and rehearsals. It needs the name of the instance alone, works while
// the server is dead, and nothing inside a machine can prevent it.
package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local/network"
)

// Site is the machines of one instance.
type Site struct {
	name string // muster-INSTANCE
	root string // directory of the instance's control groups
}

// Open finds the machines of an instance.
func Open(instance string) (*Site, error) {
	s := &Site{name: "muster-" + instance}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(string(mounts), "\n") {
		left, right, ok := strings.Cut(line, " - cgroup2 ")
		f := strings.Fields(left)
		if !ok || right == "" || len(f) < 5 {
			continue
		}
		for _, dir := range []string{s.name, filepath.Join("muster.slice", s.name+".scope")} {
			if st, err := os.Stat(filepath.Join(f[4], dir)); err == nil && st.IsDir() {
				s.root = filepath.Join(f[4], dir)
				return s, nil
			}
		}
	}
	return nil, fmt.Errorf("instance %s has no control groups", instance)
}

func (s *Site) group(id muster.MachineID) string { return filepath.Join(s.root, string(id)) }

// Processes lists what runs in a machine, with its name.
func (s *Site) Processes(id muster.MachineID) (map[int]string, error) {
	out := map[int]string{}
	err := filepath.WalkDir(s.group(id), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "cgroup.procs" {
			return nil //nolint:nilerr // groups come and go
		}
		text, _ := os.ReadFile(path)
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
				name, _ := os.ReadFile("/proc/" + word + "/comm")
				out[pid] = strings.TrimSpace(string(name))
			}
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("machine %s has no processes", id)
	}
	return out, err
}

// Freeze stops a machine, as one whose processor has stopped.
func (s *Site) Freeze(id muster.MachineID) error { return s.freeze(id, "1") }

// Thaw ends that.
func (s *Site) Thaw(id muster.MachineID) error { return s.freeze(id, "0") }

func (s *Site) freeze(id muster.MachineID, value string) error {
	return os.WriteFile(filepath.Join(s.group(id), "cgroup.freeze"), []byte(value), 0)
}

// StopAll stops every process by itself: unlike a frozen one, the machine has
// no sign of it outside.
func (s *Site) StopAll(id muster.MachineID) error { return s.Signal(id, "", unix.SIGSTOP) }

// ContinueAll ends that.
func (s *Site) ContinueAll(id muster.MachineID) error { return s.Signal(id, "", unix.SIGCONT) }

// KillAgent kills the agent alone; its init may start it again.
func (s *Site) KillAgent(id muster.MachineID) error {
	return s.Signal(id, "muster-agent", unix.SIGKILL)
}

// Signal sends a signal to the processes of that name; "" means all.
func (s *Site) Signal(id muster.MachineID, name string, sig unix.Signal) error {
	pids, err := s.Processes(id)
	if err != nil {
		return err
	}
	sent := 0
	for pid, comm := range pids {
		if (name == "" || comm == name) && unix.Kill(pid, sig) == nil {
			sent++
		}
	}
	if sent == 0 {
		return fmt.Errorf("machine %s has no process %q", id, name)
	}
	return nil
}

// Init finds process 1 of a machine, as the host numbers it.
func (s *Site) Init(id muster.MachineID) (int, error) {
	pids, err := s.Processes(id)
	if err != nil {
		return 0, err
	}
	for pid := range pids {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		for line := range strings.SplitSeq(string(text), "\n") {
			// The last number is the one in its innermost namespace.
			if f := strings.Fields(line); len(f) > 2 && f[0] == "NSpid:" && f[len(f)-1] == "1" {
				return pid, nil
			}
		}
	}
	return 0, fmt.Errorf("machine %s has no process 1", id)
}

// KillInit kills process 1, and so the machine: a crash.
func (s *Site) KillInit(id muster.MachineID) error {
	pid, err := s.Init(id)
	if err != nil {
		return err
	}
	return unix.Kill(pid, unix.SIGKILL)
}

// Ports are both of a machine's.
func Ports() []network.Port { return []network.Port{network.ManagementPort, network.MessagePort} }

// Cut pulls cables of a machine; no ports mean both.
func (s *Site) Cut(id muster.MachineID, ports ...network.Port) error {
	return s.ports(id, ports, (*network.Rack).CutPort)
}

// Mend puts cables back that Cut pulled. A machine that is gone meanwhile has
// none.
func (s *Site) Mend(id muster.MachineID, ports ...network.Port) error {
	return s.ports(id, ports, func(r *network.Rack, index int, port network.Port) error {
		if st, err := r.PortState(index, port); err != nil || !st.There {
			return err
		}
		return r.MendPort(index, port)
	})
}

// LinkDown pulls cables for a while; no ports mean both.
func (s *Site) LinkDown(ctx context.Context, id muster.MachineID, d time.Duration, ports ...network.Port) error {
	if err := s.Cut(id, ports...); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return errors.Join(ctx.Err(), s.Mend(id, ports...))
}

func (s *Site) ports(id muster.MachineID, ports []network.Port, do func(*network.Rack, int, network.Port) error) error {
	number, err := strconv.Atoi(strings.TrimPrefix(string(id), "local-"))
	if err != nil || number < 1 {
		return fmt.Errorf("%q is not a local machine", id)
	}
	rack, err := network.Attach(s.name)
	if err != nil {
		return err
	}
	if len(ports) == 0 {
		ports = Ports()
	}
	var errs []error
	for _, port := range ports {
		errs = append(errs, do(rack, number-1, port))
	}
	return errors.Join(append(errs, rack.Close())...)
}
