package units

// Scratch is the unit that makes file systems on a node's own disks.
const Scratch = "muster-scratch.service"

// ScratchOrder is the file, in the image's tree, that names the disks a node may
// use: the JSON of wire.CleanDisk. Without it the unit does nothing.
const ScratchOrder = "etc/muster/scratch.json"

// The unit is done before anybody is let in, so that what measures and what uses the
// node find the disks in their places; the agent prepares the rest meanwhile. A node
// whose disk is broken is a node all the same: nothing requires the unit.
const scratchUnit = `[Unit]
Description=Muster scratch disks
DefaultDependencies=no
ConditionPathExists=/` + ScratchOrder + `
After=sysinit.target
Conflicts=shutdown.target
Before=shutdown.target ssh.service sshd.service slurmd.service slurmctld.service multi-user.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/` + Agent + ` scratch --order /` + ScratchOrder + `
TimeoutStartSec=120s
StandardError=journal+console

[Install]
WantedBy=` + Target + `
`
