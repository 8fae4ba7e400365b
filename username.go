package muster

import "strings"

// LongestUserName is the most characters of a user's name: what useradd takes, less
// one that some programs keep for a null.
const LongestUserName = 31

// CheckUserName refuses what cannot be the name of a person on nodes: EInvalid. It is
// the only list of such names; what a certain image has besides, ImageNames tells. A name
// as a directory or a mail writes it (EXAMPLE\John.Doe, john@example.org) is refused with
// the one that fits.
//
// It is plain code: compiling patterns would cost every start of the program a
// millisecond.
func CheckUserName(name string) *Error {
	switch {
	case !IsUserName(name):
		e := Errorf(EInvalid, "%.64q cannot be a user name", name).Because(ReasonBadName)
		if fits := fittingUserName(name); fits != "" {
			return e.WithHint("use %s", fits)
		}
		return e.WithHint("a lower-case letter, then letters, digits, - _ and . (not last), at most %d characters", LongestUserName)
	case isSystemName(name):
		return Errorf(EInvalid, "%q is a name of the system itself", name).Because(ReasonNameReserved).
			WithHint("choose a person's name")
	}
	return nil
}

// IsUserName reports whether a text has the form of the name of an account: whatever
// writes one into a file of a node asks. Capital letters are left out because directories,
// mail and Slurm take Jane and jane for the same person, and nodes would not.
func IsUserName(name string) bool {
	if name == "" || len(name) > LongestUserName || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
		case c == '.' && i+1 < len(name) && name[i+1] != '.':
		default:
			return false
		}
	}
	return true
}

// fittingUserName is what is left of a name of a directory, or of a mail address, if that
// is a name of a person on nodes; otherwise "".
func fittingUserName(name string) string {
	name = strings.TrimSpace(name)
	name = name[strings.LastIndexByte(name, '\\')+1:]
	name, _, _ = strings.Cut(name, "@")
	if name = strings.ToLower(name); !IsUserName(name) || isSystemName(name) {
		return ""
	}
	return name
}

// isSystemName tells the users and groups of Debian's base-passwd(8) and of the
// services that images have or may get, and what Muster itself uses. A group counts
// like a user: a person's group has the person's name, and membership in the system's
// group of that name would be a right.
func isSystemName(name string) bool {
	switch name {
	case "root", "daemon", "bin", "sys", "sync", "games", "man", "lp", "mail", "news", "uucp", "proxy", "www-data",
		"backup", "list", "irc", "gnats", "nobody", "nogroup",
		"adm", "tty", "disk", "kmem", "dialout", "fax", "voice", "cdrom", "floppy", "tape", "sudo", "audio", "dip",
		"operator", "src", "shadow", "utmp", "video", "sasl", "plugdev", "staff", "users", "wheel",
		"input", "sgx", "clock", "kvm", "render", "rdma", "crontab", "netdev", "ssh", "sshd", "fuse",
		"messagebus", "polkitd", "tss", "uuidd", "dnsmasq", "avahi", "chrony", "ntp", "statd", "rpc", "rpcuser", "tcpdump",
		"munge", "slurm", "slurmdbd", "slurmrestd", "mysql", "mariadb", "postgres", "redis", "memcache", "bind", "named",
		"postfix", "postdrop", "ganesha", "gluster", "hdfs", "yarn", "nslcd", "sssd", "openldap", "ftp",
		"docker", "podman", "containerd", "lxd", "libvirt", "libvirt-qemu", "libvirt-dnsmasq",
		"halt", "shutdown", "muster", "agent", "system", "everyone", "admin":
		return true
	}
	return strings.HasPrefix(name, "systemd-") || strings.HasPrefix(name, "muster-") || strings.HasPrefix(name, "debian-")
}

// CheckImageName refuses the name of a person that a user or group of the image has:
// EConflict. An image whose manifest does not tell its names refuses nobody.
func (i *Image) CheckImageName(name string) *Error {
	for _, n := range i.Names {
		if n == name {
			return Errorf(EConflict, "%q is a user or group of image %s itself", name, i.Name).Because(ReasonNameTaken).
				WithHint("log in by another name, or choose another image")
		}
	}
	return nil
}
