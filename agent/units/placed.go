package units

// Masks are units of a whole machine that would undo what is set already: addresses of
// links, the identity of the host, work that is done.
func Masks() []string {
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

// Silenced are generators of units that a node without a system on its disk never has:
// each would be a process at start.
func Silenced() []string {
	var out []string
	for _, name := range []string{
		"bless-boot", "cryptsetup", "factory-reset", "gpt-auto", "hibernate-resume", "import", "integritysetup", "ssh",
		"system-update", "tpm2", "veritysetup",
	} {
		out = append(out, "systemd-"+name+"-generator")
	}
	return out
}

// Late are units that need a module each, and are started when that is loaded: at the
// start nobody waits for them.
func Late() []string {
	const wants = Folder + "/sysinit.target.wants/"
	return []string{wants + "sys-kernel-config.mount", wants + "sys-fs-fuse-connections.mount"}
}

// Placed are patterns of path.Match, in an image's tree, of what providers and the agent
// write there for one node of one cluster: an image that is made of a node's root has what
// its base has in these places. masks are more units that the node's image masks on slices.
// A directory that matches stands for all below it.
func Placed(masks []string) []string {
	list := []string{
		"usr/lib/muster", "etc/muster", "var/lib/muster",
		Folder + "/muster-*.service", Folder + "/" + Target, "usr/lib/systemd/*.conf.d/50-muster.conf", Folder + "/*.d/50-muster.conf",
		Default, "etc/hostname", "etc/hosts", "etc/machine-id",
		// Keys, and who is let in by them.
		"etc/ssh/ssh_host_*", "etc/ssh/principals", "etc/ssh/authorized_keys.d", "etc/ssh/muster_*", "etc/ssh/ssh_known_hosts",
		"etc/ssh/*.d/10-muster.conf", "etc/munge/munge.key", "root/.ssh",
		// The scheduler's part, and its state.
		"etc/default/slurmd", "etc/slurm", "var/lib/slurm", "var/spool/slurm*", "run/slurm*",
		"etc/motd.d/20-muster", "etc/security/limits.d/50-muster.conf", "etc/profile.d/muster.sh",
		"etc/apt/apt.conf.d/90muster-proxy", "etc/systemd/timesyncd.conf.d/muster.conf", "etc/locale.conf",
		"etc/openmpi/openmpi-mca-params.conf", "etc/openmpi/prte-mca-params.conf", "etc/openmpi/*-default-hostfile", "etc/environment",
		// A whole machine's modules and kernel are those of its image.
		"usr/lib/modules", "boot",
	}
	for _, m := range append(Masks(), masks...) {
		list = append(list, "etc/systemd/system/"+m)
	}
	for _, g := range Silenced() {
		list = append(list, "etc/systemd/system-generators/"+g)
	}
	return append(list, Late()...)
}
