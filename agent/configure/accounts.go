package configure

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// accountFiles are the four texts in which a system keeps its users.
type accountFiles struct {
	passwd, group, shadow, gshadow string
}

// merge makes want the accounts that Muster keeps in the files. had are those
// it made before. Lines of others stay as they are, byte for byte. An account
// that the image has itself is never taken over: whoever would need that is left
// out and told.
func (a accountFiles) merge(want []wire.Account, had map[string]int, shell string) (accountFiles, map[string]error) {
	refused := map[string]error{}
	mine := func(name string) bool { _, ok := had[name]; return ok }
	keep := accountFiles{
		passwd:  without(a.passwd, mine),
		group:   without(a.group, mine),
		shadow:  without(a.shadow, mine),
		gshadow: without(a.gshadow, mine),
	}
	users, groups := numbers(keep.passwd), numbers(keep.group)
	for _, u := range slices.SortedFunc(slices.Values(want), func(a, b wire.Account) int { return a.UID - b.UID }) {
		if err := clash(u, users, groups); err != nil {
			refused[u.Name] = err
			continue
		}
		users[u.Name], groups[u.Name] = u.UID, u.GID
		uid, gid := strconv.Itoa(u.UID), strconv.Itoa(u.GID)
		keep.passwd = add(keep.passwd, u.Name, "x", uid, gid, plain(u.FullName), cmp.Or(u.Home, "/home/"+u.Name), shell)
		keep.group = add(keep.group, u.Name, "x", gid, "")
		// A line in shadow, with no password: without one, PAM closes the
		// session of a user who has been let in by a key.
		keep.shadow = add(keep.shadow, u.Name, "*", "19700", "0", "99999", "7", "", "", "")
		keep.gshadow = add(keep.gshadow, u.Name, "!", "", "")
	}
	return keep, refused
}

// clash refuses a name or number that another account has.
func clash(u wire.Account, users, groups map[string]int) error {
	taken := func(what, by string) error {
		return muster.Errorf(muster.EConflict, "user %s: the %s is taken by %s in this image", u.Name, what, by).
			WithHint("give the user another name or number")
	}
	if _, ok := users[u.Name]; ok {
		return taken("name", "an account")
	}
	if _, ok := groups[u.Name]; ok {
		return taken("name", "a group")
	}
	for name, n := range users {
		if n == u.UID {
			return taken("number "+strconv.Itoa(n), name)
		}
	}
	for name, n := range groups {
		if n == u.GID {
			return taken("group number "+strconv.Itoa(n), name)
		}
	}
	return nil
}

// numbers reads the names of a file with the number in the third field.
func numbers(text string) map[string]int {
	m := map[string]int{}
	for line := range strings.Lines(text) {
		p := strings.Split(strings.TrimSpace(line), ":")
		if len(p) < 3 {
			continue
		}
		if n, err := strconv.Atoi(p[2]); err == nil {
			m[p[0]] = n
		}
	}
	return m
}

// without leaves out the lines of some names.
func without(text string, drop func(name string) bool) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		name, _, ok := strings.Cut(line, ":")
		if !ok || !drop(name) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func add(text string, fields ...string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + strings.Join(fields, ":") + "\n"
}

// plain takes from a name what would break a line.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == ':' || r == ',' || r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// accounts are the users and, where the image has the means to measure, the
// account that does.
func (c *Configurer) accounts(cfg *wire.NodeConfig) []wire.Account {
	if cfg.Prober == nil || !c.files.exists(probeProgram) {
		return cfg.Users
	}
	return append(slices.Clone(cfg.Users), *cfg.Prober)
}

const probeProgram = "/usr/libexec/muster/muster-probe"

// users brings the accounts in place, one by one, and takes leave of those who are
// gone. It reports who could not be given an account, and why.
func (c *Configurer) users(cfg *wire.NodeConfig, had memory) (map[string]error, error) {
	files := []struct {
		path string
		mode uint32
		text func(*accountFiles) *string
	}{
		{"/etc/group", 0o644, func(a *accountFiles) *string { return &a.group }},
		{"/etc/gshadow", 0o640, func(a *accountFiles) *string { return &a.gshadow }},
		{"/etc/shadow", 0o640, func(a *accountFiles) *string { return &a.shadow }},
		{"/etc/passwd", 0o644, func(a *accountFiles) *string { return &a.passwd }},
	}
	var old accountFiles
	for _, f := range files {
		text, err := c.files.read(f.path)
		if err != nil {
			return nil, err
		}
		*f.text(&old) = text
	}
	shell := "/bin/bash"
	if !c.files.exists(shell) {
		shell = "/bin/sh"
	}
	// What an interrupted Apply may have written counts as made by Muster:
	// an account with just this name and number is the same account.
	mine := map[string]int{}
	for name, uid := range had.Users {
		mine[name] = uid
	}
	present := numbers(old.passwd)
	want := c.accounts(cfg)
	for _, u := range want {
		if n, ok := present[u.Name]; ok && n == u.UID {
			mine[u.Name] = n
		}
	}
	updated, refused := old.merge(want, mine, shell)
	for _, f := range files {
		if *f.text(&old) == *f.text(&updated) {
			continue // keeps mode and group of the image's own file
		}
		if err := c.files.replace(f.path, *f.text(&updated), f.mode); err != nil {
			return nil, err
		}
	}
	return refused, c.proberHome(cfg)
}

// proberHome makes the place where what measures runs; it is in memory.
func (c *Configurer) proberHome(cfg *wire.NodeConfig) error {
	u := cfg.Prober
	if u == nil || u.Home == "" || !c.files.exists(probeProgram) {
		return nil
	}
	home := c.files.at(u.Home)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	if c.files.noOwners {
		return nil
	}
	return os.Lchown(home, u.UID, u.GID)
}

// gone are the users who were here and are not any more.
func gone(cfg *wire.NodeConfig, had memory) map[string]int {
	out := map[string]int{}
	for name, uid := range had.Users {
		if !slices.ContainsFunc(cfg.Users, func(u wire.Account) bool { return u.Name == name }) {
			out[name] = uid
		}
	}
	return out
}

// lockOut takes their ways in from those who are gone. It is the first thing that a
// new configuration does, and depends on nothing else in it. Without a configuration
// that can be read it leaves root's alone.
func (c *Configurer) lockOut(cfg *wire.NodeConfig, gone map[string]int) error {
	if len(gone) == 0 {
		return nil
	}
	var errs []error
	if cfg != nil {
		_, root := sshUsers(cfg)
		errs = append(errs, c.plainFiles(none, root))
	}
	for name := range gone {
		for _, path := range []string{principals + name, authorizedKeys + name} {
			errs = append(errs, c.files.remove(path))
		}
	}
	return errors.Join(errs...)
}

// endProcesses ends what those who are gone still run. Their homes stay: they are the
// cluster's data; for what else they left see endFiles.
func (c *Configurer) endProcesses(gone map[string]int) error {
	if c.o.Root != "" {
		return nil
	}
	var errs []error
	for _, uid := range gone {
		errs = append(errs, killUser(uid))
	}
	return errors.Join(errs...)
}
