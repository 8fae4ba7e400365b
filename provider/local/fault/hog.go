package fault

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/muster-hpc/muster"
)

// HogMemory uses up the memory of a machine, inside its groups: by files in
// its own /dev/shm and /tmp, which nothing but the machine's end gives back,
// and by a process that takes what is left. It returns when that has ended,
// as it does once it is killed.
func (s *Site) HogMemory(ctx context.Context, id muster.MachineID) error {
	pid, err := s.Init(id)
	if err != nil {
		return err
	}
	// By way of its root's view of the file system, as a user's program would.
	const script = `for f in /dev/shm/hog /tmp/hog /run/hog /hog; do head -c 1000g /dev/zero >$f 2>/dev/null; done; tail -c 1000g /dev/zero >/dev/null`
	cmd := exec.CommandContext(ctx, "sh", "-c", `read -r go && exec nsenter -t "$0" -U -m -p -i -u -n -C --setuid=0 --setgid=0 -- /bin/sh -c "$1"`,
		fmt.Sprint(pid), script)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := s.join(id, cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return err
	}
	_, _ = in.Write([]byte("go\n"))
	_ = cmd.Wait() // killed: that is what it is for
	return ctx.Err()
}
