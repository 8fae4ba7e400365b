package boot

// agentPath is where the agent is in the image's tree: this very program.
const agentPath = "usr/lib/muster/muster-agent"

const agentUnit = `[Unit]
Description=Muster agent
DefaultDependencies=no
After=sysinit.target
Conflicts=shutdown.target
Before=shutdown.target
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=/usr/lib/muster/muster-agent
Restart=always
RestartSec=200ms
OOMScoreAdjust=-500
KillMode=process
LimitNOFILE=65536

[Install]
WantedBy=muster.target
`

const musterTarget = `[Unit]
Description=Muster node
Wants=muster-agent.service
Requires=sysinit.target
After=sysinit.target
AllowIsolate=yes
`

// Limits that programs of HPC need, and a stop that a power cut does not wait for.
const systemConf = `[Manager]
DefaultLimitMEMLOCK=infinity
DefaultLimitSTACK=8388608:infinity
DefaultLimitNOFILE=65536:1048576
DefaultTimeoutStopSec=20s
`

// The journal goes to the server; here it is in memory.
const journaldConf = `[Journal]
Storage=volatile
RuntimeMaxUse=64M
`

// units are files of the root file system of a node that is a whole machine.
func units() map[string]string {
	return map[string]string{
		"usr/lib/systemd/system/muster-agent.service":    agentUnit,
		"usr/lib/systemd/system/muster.target":           musterTarget,
		"usr/lib/systemd/system.conf.d/50-muster.conf":   systemConf,
		"usr/lib/systemd/journald.conf.d/50-muster.conf": journaldConf,
	}
}

// masks are units that would undo what is set already: addresses of links, the
// identity of the host.
func masks() []string {
	return []string{
		"systemd-networkd.service", "systemd-networkd.socket", "systemd-networkd-wait-online.service",
		"systemd-network-generator.service", "networking.service", "ifupdown-pre.service", "NetworkManager.service",
		"dhcpcd.service", "cloud-init.service", "cloud-init-local.service", "systemd-firstboot.service",
		"systemd-remount-fs.service", "systemd-fsck-root.service", "systemd-growfs-root.service",
		"systemd-hibernate-resume.service", "systemd-hibernate-clear.service",
	}
}
