package local

// masked are units of a Debian system that have nothing to do in a slice of a
// host: they wait for devices, consoles or networks that are not theirs to
// manage, or tidy up what lives for hours only. Names that an image lacks do
// no harm.
func masked() []string {
	return []string{
		// Devices, modules and file systems are the host's.
		"systemd-udevd.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket",
		"systemd-udevd-varlink.socket", "systemd-udev-trigger.service", "systemd-udev-settle.service",
		"systemd-udev-load-credentials.service", "systemd-hwdb-update.service",
		"systemd-modules-load.service", "kmod-static-nodes.service", "modprobe@.service",
		"systemd-remount-fs.service", "systemd-fsck-root.service", "systemd-growfs-root.service",
		"systemd-pstore.service", "systemd-binfmt.service", "systemd-repart.service",
		"systemd-tmpfiles-setup-dev.service", "systemd-tmpfiles-setup-dev-early.service",
		"dev-hugepages.mount", "dev-mqueue.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount",
		"sys-kernel-config.mount", "sys-fs-fuse-connections.mount", "proc-sys-fs-binfmt_misc.automount",
		"proc-sys-fs-binfmt_misc.mount", "tmp.mount", "run-lock.mount",
		"systemd-tpm2-setup.service", "systemd-tpm2-setup-early.service", "systemd-pcrextend.socket",
		"systemd-pcrlock.socket", "systemd-pcrmachine.service", "systemd-pcrphase.service",
		"systemd-pcrphase-sysinit.service", "systemd-creds.socket", "systemd-sysext.socket",
		"systemd-bootctl.socket", "systemd-battery-check.service", "systemd-boot-random-seed.service",
		"systemd-hibernate-clear.service", "systemd-hibernate-resume.service",
		// Users, identity, clock and names come with the configuration.
		"systemd-sysusers.service", "systemd-firstboot.service", "systemd-machine-id-commit.service",
		"systemd-random-seed.service", "systemd-sysctl.service", "systemd-timesyncd.service",
		"systemd-networkd.service", "systemd-networkd.socket", "systemd-networkd-wait-online.service",
		"systemd-network-generator.service", "systemd-resolved.service", "networking.service",
		"ifupdown-pre.service", "systemd-homed.service", "systemd-userdbd.service", "systemd-userdbd.socket",
		"systemd-logind.service", "systemd-logind-varlink.socket", "systemd-hostnamed.socket",
		"systemd-importd.socket", "systemd-mountfsd.socket", "systemd-nsresourced.socket",
		"dbus.service", "dbus.socket", "hostname.service", "x11-common.service", "rsync.service", "nftables.service",
		// No console.
		"getty.target", "console-getty.service", "getty@tty1.service", "getty-static.service", "serial-getty@.service",
		"systemd-vconsole-setup.service", "console-setup.service", "keyboard-setup.service",
		"systemd-ask-password-console.path", "systemd-ask-password-wall.path", "systemd-initctl.socket",
		// Upkeep of long-lived systems.
		"apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer",
		"e2scrub_reap.service", "fstrim.timer", "logrotate.timer", "man-db.timer", "motd-news.timer",
		"systemd-tmpfiles-clean.timer", "ldconfig.service", "systemd-update-done.service",
		"systemd-update-utmp.service", "systemd-update-utmp-runlevel.service",
		"systemd-journal-catalog-update.service", "systemd-journal-flush.service",
		"systemd-pcrlock-make-policy.service", "systemd-ssh-generator.service", "sshd-unix-local.socket",
		"exim4.service", "exim4-base.timer", "cron.service", "nfs-client.target", "rpcbind.socket",
	}
}

// silenced are generators of units that have nothing to say here: disks, swap,
// consoles, boot menus, old init scripts. Each would be a process at start.
func silenced() []string {
	var out []string
	for _, name := range []string{
		"bless-boot", "cryptsetup", "debug", "factory-reset", "fstab", "getty", "gpt-auto", "hibernate-resume", "import",
		"integritysetup", "rc-local", "run", "ssh", "system-update", "sysv", "tpm2", "veritysetup",
	} {
		out = append(out, "systemd-"+name+"-generator")
	}
	return append(out, "lvm2-activation-generator", "netplan", "nfs-server-generator", "rpc-pipefs-generator", "zfs-mount-generator")
}
