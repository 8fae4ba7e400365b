package units

import (
	"fmt"
	"strings"
	"time"
)

// Agent is where the agent's program is in an image's tree.
const Agent = "usr/lib/muster/muster-agent"

// Target is the unit that a node boots to.
const Target = "muster.target"

// Folder is where units of an image's tree are.
const Folder = "usr/lib/systemd/system"

// Default makes Target what the image boots to: the name of a link in an image's
// tree, and what it points to.
const (
	Default   = "etc/systemd/system/default.target"
	DefaultTo = "/" + Folder + "/" + Target
)

// Kind is what differs between kinds of nodes.
type Kind struct {
	// Stop is how long a service may take to stop before it is killed.
	Stop time.Duration
	// Journal is how much memory the journal may take, in MiB. It goes to the server.
	Journal int
	// Manager and Journald are more lines of system.conf and journald.conf.
	Manager, Journald []string
	// Scratch: a unit makes file systems on the node's own disks before the agent
	// starts.
	Scratch bool
}

// Files are the files of a kind of nodes, by name in the image's tree.
func (k Kind) Files() map[string]string {
	files := map[string]string{
		Folder + "/muster-agent.service":                 agentUnit,
		Folder + "/" + Target:                            k.target(),
		"usr/lib/systemd/system.conf.d/50-muster.conf":   k.manager(),
		"usr/lib/systemd/journald.conf.d/50-muster.conf": k.journald(),
		Folder + "/ssh.service.d/50-muster.conf":         sshService,
	}
	if k.Scratch {
		files[Folder+"/"+Scratch] = scratchUnit
	}
	return files
}

// Debian has sshd try its configuration before each start, as a process of its own. It
// does so again when it starts, and says the same if it is wrong.
const sshService = `[Service]
ExecStartPre=
`

// The agent waits for nothing: what it needs is there before init starts, its links
// too. It prepares the node while systemd brings up devices, and the services that it
// starts then come after sysinit.target, as any. Facts are told after those. One that was
// stopped is silent, and killed: no other signal reaches it.
const agentUnit = `[Unit]
Description=Muster agent
DefaultDependencies=no
Conflicts=shutdown.target
Before=shutdown.target
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=/` + Agent + `
Restart=always
RestartSec=200ms
WatchdogSec=60s
WatchdogSignal=SIGKILL
OOMScoreAdjust=-500
KillMode=process
LimitNOFILE=65536

[Install]
WantedBy=` + Target + `
`

func (k Kind) target() string {
	wants := "muster-agent.service"
	if k.Scratch {
		wants += " " + Scratch
	}
	return `[Unit]
Description=Muster node
Wants=` + wants + `
Requires=sysinit.target
AllowIsolate=yes
`
}

// manager sets the limits that programs of HPC need, and a stop that a power cut
// does not wait for.
func (k Kind) manager() string {
	return fmt.Sprintf(`[Manager]
DefaultLimitMEMLOCK=infinity
DefaultLimitSTACK=8388608:infinity
DefaultLimitNOFILE=65536:1048576
DefaultTimeoutStopSec=%ds
%s`, int(k.Stop.Seconds()), lines(k.Manager))
}

func (k Kind) journald() string {
	return fmt.Sprintf("[Journal]\nStorage=volatile\nRuntimeMaxUse=%dM\n%s", k.Journal, lines(k.Journald))
}

func lines(l []string) string {
	if len(l) == 0 {
		return ""
	}
	return strings.Join(l, "\n") + "\n"
}
