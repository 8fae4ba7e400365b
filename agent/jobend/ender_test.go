package jobend

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	slurmd = "/system.slice/slurmd.service"
	sshd   = "/system.slice/ssh.service"
)

// table makes a process table; process 1 stands for the program that asks.
func table(t *testing.T, list ...process) string {
	t.Helper()
	dir := t.TempDir()
	list = append(list, process{pid: 1, group: slurmd})
	for _, p := range list {
		at := filepath.Join(dir, fmt.Sprint(p.pid))
		title, environ := "sleep\x0060", "PATH=/bin\x00"
		if p.uid == 0 && p.job > 0 {
			title = fmt.Sprintf("slurmstepd: [%d.batch]", p.job)
		} else if p.job > 0 {
			environ += fmt.Sprintf("SLURM_JOB_ID=%d\x00", p.job)
		}
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"status": fmt.Sprintf("Name:\tsleep\nState:\tS (sleeping)\nUid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", p.uid),
			"cgroup": "9:name=systemd:/\n0::" + p.group + "\n", "environ": environ, "cmdline": title,
		} {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func TestEnd(t *testing.T) {
	t.Parallel()
	const alice, bob = 20000, 20001
	step := func(pid, job int) process { return process{pid: pid, group: slurmd, job: job} }
	for name, c := range map[string]struct {
		table []process
		want  string
	}{
		"what the job left, by its environment or without one": {[]process{
			{pid: 10, uid: alice, group: slurmd, job: 7}, {pid: 11, uid: alice, group: slurmd},
		}, "[10 11]"},
		"a shell of hers, and one of bob's job": {[]process{
			{pid: 10, uid: alice, group: slurmd, job: 7}, {pid: 11, uid: alice, group: sshd, job: 7}, {pid: 12, uid: bob, group: slurmd, job: 8}, step(13, 8),
		}, "[10]"},
		"another job of hers runs": {[]process{
			{pid: 10, uid: alice, group: slurmd, job: 7}, {pid: 11, uid: alice, group: slurmd, job: 9}, step(12, 9), {pid: 13, uid: alice, group: slurmd},
		}, "[10]"},
		"another job of hers has ended": {[]process{
			{pid: 10, uid: alice, group: slurmd, job: 7}, {pid: 11, uid: alice, group: slurmd, job: 6},
		}, "[10 11]"},
		"nothing": {nil, "[]"},
	} {
		dir := table(t, c.table...)
		var ended []int
		e := Ender{Job: 7, UID: alice, Proc: dir, Kill: func(pid int) error {
			ended = append(ended, pid)
			return os.RemoveAll(filepath.Join(dir, fmt.Sprint(pid)))
		}}
		if err := e.End(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if slices.Sort(ended); fmt.Sprint(ended) != c.want {
			t.Errorf("%s: ended %v, want %s", name, ended, c.want)
		}
	}
	immortal := Ender{Job: 7, UID: alice, Proc: table(t, process{pid: 10, uid: alice, group: slurmd, job: 7}), Kill: func(int) error { return nil }}
	if err := immortal.End(); err == nil || !strings.Contains(err.Error(), "job 7") {
		t.Errorf("what does not end: %v", err)
	}
}
