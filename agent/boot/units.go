package boot

import (
	"time"

	"github.com/muster-hpc/muster/agent/units"
)

// whole is a node that is a whole machine: it has devices, and users' programs that
// may need a while to stop.
func whole() units.Kind {
	return units.Kind{Stop: 20 * time.Second, Journal: 64, Scratch: true}
}

// masks are units that would undo what is set already: addresses of links, the
// identity of the host, work that is done.
func masks() []string {
	return []string{
		"systemd-networkd.service", "systemd-networkd.socket", "systemd-networkd-wait-online.service",
		"systemd-network-generator.service", "networking.service", "ifupdown-pre.service", "NetworkManager.service",
		"dhcpcd.service", "cloud-init.service", "cloud-init-local.service", "systemd-firstboot.service",
		"systemd-remount-fs.service", "systemd-fsck-root.service", "systemd-growfs-root.service",
		"systemd-hibernate-resume.service", "systemd-hibernate-clear.service",
		// What they make is in the image already, or is of no use for the life of a node.
		"ldconfig.service", "systemd-hwdb-update.service", "systemd-journal-catalog-update.service", "systemd-update-done.service",
		"systemd-sysusers.service", "systemd-pstore.service", "systemd-boot-random-seed.service", "systemd-random-seed.service",
		// The journal is in memory for good; nobody hands credentials to udev; what runs
		// before there are users does nothing that the same program does not do after.
		"systemd-journal-flush.service", "systemd-machine-id-commit.service", "systemd-udev-load-credentials.service",
		"systemd-tmpfiles-setup-dev-early.service",
	}
}

// silenced are generators of units that a node without a system on its disk never has:
// each would be a process at start.
func silenced() []string {
	var out []string
	for _, name := range []string{
		"bless-boot", "cryptsetup", "factory-reset", "gpt-auto", "hibernate-resume", "import", "integritysetup", "ssh",
		"system-update", "tpm2", "veritysetup",
	} {
		out = append(out, "systemd-"+name+"-generator")
	}
	return out
}

// late are units that need a module each, and are started when that is loaded: at the
// start nobody waits for them.
func late() []string {
	const wants = units.Folder + "/sysinit.target.wants/"
	return []string{wants + "sys-kernel-config.mount", wants + "sys-fs-fuse-connections.mount"}
}
