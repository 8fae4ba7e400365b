package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local/fault"
	"github.com/muster-hpc/muster/provider/local/network"
)

// harms are all that a cluster suffers, in this order. The first finds a slurmctld that has
// not written down which nodes have registered.
func (s *faultSite) harms() []harm {
	list := []harm{s.hit("slurmctld of a young cluster killed", "n01", "slurmctld", unix.SIGKILL)}
	daemons := []string{"munged", "slurmd", "sshd", "muster-agent", "systemd-journal"}
	for _, node := range []string{"n01", "n02"} {
		on := daemons
		if node == "n01" {
			on = append([]string{"slurmctld", "mariadbd", "slurmdbd"}, daemons...)
		}
		for _, d := range on {
			list = append(list, s.hit(d+" killed", node, d, unix.SIGKILL))
			list = append(list, s.hit(d+" stopped", node, d, unix.SIGSTOP))
		}
		list = append(list, s.systemdStopped(node), s.linkDown(node))
		for _, dir := range []string{"/", "/run", "/tmp", "/dev/shm"} {
			list = append(list, s.filled(node, dir, "root", "unfit"))
		}
	}
	// Homes lie on one disk with what scheduler and database keep. Who fills it sees it.
	home := s.filled("n02", "/home/"+s.user, s.user, "")
	home.what, home.lasts = "homes, states, database full and freed", 45*time.Second
	return append(list, s.startingControllerKilled(), home)
}

// hit sends a signal to all processes of one name, and there has to be one again that
// runs: another one, if they were killed.
func (s *faultSite) hit(what, node, process string, sig unix.Signal) harm {
	killed := map[int]bool{}
	return harm{what: what, node: node,
		inflict: func() error {
			return s.on(node, func(site *fault.Site, m muster.MachineID) error {
				all, err := site.Processes(m)
				if err != nil {
					return err
				}
				sent := errors.New("there is no " + process)
				for pid, name := range all {
					if name == process && signalled(pid, sig) == nil {
						killed[pid], sent = sig == unix.SIGKILL, nil
					}
				}
				return sent
			})
		},
		healed: func() error { return s.lives(node, process, killed) }}
}

func (s *faultSite) systemdStopped(node string) harm {
	return harm{what: "systemd stopped", node: node, healed: func() error { return s.lives(node, "systemd", nil) },
		inflict: func() error {
			return s.on(node, func(site *fault.Site, m muster.MachineID) error {
				pid, err := site.Init(m)
				if err != nil {
					return err
				}
				return signalled(pid, unix.SIGSTOP)
			})
		}}
}

// startingControllerKilled kills a slurmctld as soon as there is one.
func (s *faultSite) startingControllerKilled() harm {
	h := s.hit("slurmctld killed as it starts", "n01", "slurmctld", unix.SIGKILL)
	kill := h.inflict
	h.inflict = func() error {
		if _, err := s.asRoot("n01", "systemctl stop slurmctld; systemctl start --no-block slurmctld"); err != nil {
			return err
		}
		_, err := s.until(time.Minute, kill)
		return err
	}
	return h
}

func (s *faultSite) linkDown(node string) harm {
	return harm{what: "message link down and up", node: node, told: "unfit",
		inflict: func() error {
			return s.on(node, func(site *fault.Site, m muster.MachineID) error { return site.Cut(m, network.MessagePort) })
		},
		undo: func() error {
			return s.on(node, func(site *fault.Site, m muster.MachineID) error { return site.Mend(m, network.MessagePort) })
		}}
}

// filled fills a file system, and frees it again.
func (s *faultSite) filled(node, dir, user string, told muster.ConditionCode) harm {
	file := strings.TrimSuffix(dir, "/") + "/muster-full"
	as := func(command string) error {
		_, err := s.try(time.Minute, "", "exec", "cfd", "--node", node, "--user", user, "--", "sh", "-c", command)
		return err
	}
	return harm{what: dir + " full and freed", node: node, told: told,
		inflict: func() error {
			return as("! dd if=/dev/zero of=" + file + " bs=1M 2>/dev/null && test -s " + file)
		},
		undo: func() error { return as("rm -f " + file) }}
}

// breakForGood breaks two nodes of the cluster late so that only a start helps. What it
// returns waits until that has come.
func (s *faultSite) breakForGood(t *testing.T) func() (string, error) {
	t.Helper()
	before, err := s.showCluster("late")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	site, err := fault.Open(s.instance)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range []struct{ unit, process string }{1: {"munge", "munged"}, 2: {"ssh", "sshd"}} {
		if d.unit == "" {
			continue // the head
		}
		n := before.Nodes[i]
		if _, err := s.try(time.Minute, "", "exec", "late", "--node", n.Name, "--user", "root", "--", "systemctl", "mask", "--runtime", d.unit); err != nil {
			t.Fatal(err)
		}
		if err := site.Signal(n.Machine, d.process, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	return func() (string, error) {
		_, err := s.until(time.Until(began.Add(13*time.Minute)), func() error {
			c, err := s.showCluster("late")
			if err != nil {
				return err
			}
			for i, n := range c.Nodes {
				if n.Name != c.Head && (n.Attempt == before.Nodes[i].Attempt || !hasCode(n.Conditions, "anew")) {
					return fmt.Errorf("node %s was not started anew: %v", n.Name, n.Conditions)
				}
			}
			return s.well("late")
		})
		return fmt.Sprintf("%-46s %-4s %10s %8.1f s  %s", "munge, and sshd, that cannot start again", "two", "", time.Since(began).Seconds(), "`anew`"), err
	}
}

func (s *faultSite) asRoot(node, command string) (string, error) {
	return s.try(time.Minute, "", "exec", "cfd", "--node", node, "--user", "root", "--", "sh", "-c", command)
}

// on does something to the machine of a node of cfd, from outside.
func (s *faultSite) on(node string, do func(*fault.Site, muster.MachineID) error) error {
	n, err := s.node(node)
	if err != nil {
		return err
	}
	site, err := fault.Open(s.instance)
	if err != nil {
		return err
	}
	return do(site, n.Machine)
}

// lives reports whether a process of that name runs on a node, beside those that were
// killed, and none is stopped.
func (s *faultSite) lives(node, process string, killed map[int]bool) error {
	return s.on(node, func(site *fault.Site, m muster.MachineID) error {
		all, err := site.Processes(m)
		if err != nil {
			return err
		}
		there := errors.New(process + " does not run")
		for pid, name := range all {
			if name != process || killed[pid] {
				continue
			}
			switch stateOf(pid) {
			case "T", "t":
				return errors.New(process + " is stopped")
			case "Z", "X", "":
			default:
				there = nil
			}
		}
		return there
	})
}

// signalled sends a signal, and waits until one that stops has stopped, or until that was
// undone already.
func signalled(pid int, sig unix.Signal) error {
	err := unix.Kill(pid, sig)
	for end := time.Now().Add(2 * time.Minute); err == nil && sig == unix.SIGSTOP && stateOf(pid) != "T" && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	return err
}

// stateOf is the letter that the kernel has for a process; "" when there is none.
func stateOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
	state, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	return state
}
