package control

import (
	"strings"

	"github.com/muster-hpc/muster"
)

// checkUserName refuses names that cannot be an ordinary user of a node. The
// checks here are plain code: compiling patterns would cost every start of the
// program a millisecond.
func checkUserName(name string) *muster.Error {
	switch {
	case !isUserName(name):
		return muster.Errorf(muster.EInvalid, "%.40q is not a user name", name).
			WithHint("a lower-case letter, then letters, digits, - and _, at most 31 characters")
	case isSystemName(name):
		return muster.Errorf(muster.EInvalid, "%q is a name of the system itself", name).
			WithHint("choose a person's name")
	}
	return nil
}

func lower(r byte) bool { return r >= 'a' && r <= 'z' }
func digit(r byte) bool { return r >= '0' && r <= '9' }

func isUserName(name string) bool {
	if name == "" || len(name) > 31 || !lower(name[0]) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !lower(c) && !digit(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// isSystemName tells names that the images, Debian or Muster itself use.
func isSystemName(name string) bool {
	switch name {
	case "root", "daemon", "bin", "sys", "sync", "games", "man", "lp", "mail", "news", "uucp", "proxy",
		"www-data", "backup", "list", "irc", "nobody", "nogroup", "munge", "slurm", "sshd", "messagebus",
		"mysql", "polkitd", "dnsmasq", "tss", "agent", "system", "admin":
		return true
	}
	return strings.HasPrefix(name, "systemd-")
}

func isProjectName(name string) bool {
	if name == "" || len(name) > 63 || (!lower(name[0]) && !digit(name[0])) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !lower(c) && !digit(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
