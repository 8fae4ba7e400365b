package main

import (
	"context"
	"os/exec"
	"strings"

	"github.com/muster-hpc/muster/agent"
)

// goodbye asks systemd whether the machine goes down: when it does, the target
// that it goes to is among its jobs.
func goodbye(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "systemctl", "list-jobs", "--no-legend", "--no-pager", "--plain").Output()
	if err != nil {
		return ""
	}
	return downTo(string(out))
}

// downTo reads lines of "number unit type state".
func downTo(jobs string) string {
	for line := range strings.Lines(jobs) {
		p := strings.Fields(line)
		if len(p) < 3 || p[2] != "start" {
			continue
		}
		switch p[1] {
		case "reboot.target", "kexec.target":
			return agent.GoodbyeReboot
		case "poweroff.target", "halt.target", "exit.target":
			return agent.GoodbyePowerOff
		}
	}
	return ""
}
