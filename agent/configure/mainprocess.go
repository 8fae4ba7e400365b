package configure

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// mainProcess is the main process of a unit, once it is known: with its start a number
// names a process for ever.
type mainProcess struct {
	pid   int
	start string
}

// processState is what the kernel tells of a process.
type processState int

const (
	processGone processState = iota
	processRuns
	processStopped // by a signal or a tracer: it does nothing until it is continued
)

// look reads one small file.
func (p mainProcess) look(c *Configurer) processState {
	if p.pid == 0 {
		return processGone
	}
	state, start := c.readStat(p.pid)
	switch {
	case state == "" || start != p.start || state == "Z" || state == "X":
		return processGone
	case stands(state):
		return processStopped
	}
	return processRuns
}

// stands reports whether a process in this state does nothing until it is continued.
func stands(state string) bool { return state == "T" || state == "t" }

// readStat gives state and start of a process; "" when there is none.
func (c *Configurer) readStat(pid int) (state, start string) {
	b, err := os.ReadFile(c.files.at(fmt.Sprintf("/proc/%d/stat", pid)))
	if err != nil {
		return "", ""
	}
	// The second field is the program's name in parentheses, which it chooses.
	end := strings.LastIndexByte(string(b), ')')
	f := strings.Fields(string(b[end+1:]))
	if end < 0 || len(f) < 20 {
		return "", ""
	}
	return f[0], f[19]
}

// unitState asks systemd for a unit's state and main process.
func (c *Configurer) unitState(ctx context.Context, unit string) (active string, main mainProcess, err error) {
	text, err := c.run.Run(ctx, "", "systemctl", "show", "--property=ActiveState,MainPID", unit)
	if err != nil {
		return "", main, err
	}
	for line := range strings.Lines(text) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
		case "ActiveState":
			active = value
		case "MainPID":
			main.pid, _ = strconv.Atoi(value)
		}
	}
	if main.pid > 0 {
		_, main.start = c.readStat(main.pid)
	}
	return active, main, nil
}
