package initramfs

import (
	"bytes"
	"debug/elf"
	"strings"

	"github.com/muster-hpc/muster"
)

// modinfo is what a module says of itself.
type modinfo struct {
	name    string
	depends []string // names of modules that it needs
	alias   []string // patterns of devices, and other names
	softdep []string // "pre: a b post: c"
	release string   // of the kernel that it is for
}

// readModinfo reads a module's own description: the section .modinfo, which holds
// KEY=VALUE, each ended by a zero byte.
func readModinfo(b []byte) (m modinfo, err error) {
	// debug/elf is not hardened against every file; a module that it cannot
	// read is no reason to die.
	defer func() {
		if r := recover(); r != nil {
			err = muster.Errorf(muster.ECorrupt, "the module cannot be read: %v", r)
		}
	}()
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return m, muster.Errorf(muster.ECorrupt, "the module is not an ELF file").Wrap(err)
	}
	s := f.Section(".modinfo")
	if s == nil || s.Size > uint64(len(b)) {
		return m, muster.Errorf(muster.ECorrupt, "the module does not describe itself")
	}
	text, err := s.Data()
	if err != nil {
		return m, muster.Errorf(muster.ECorrupt, "the module's description cannot be read").Wrap(err)
	}
	for field := range strings.SplitSeq(string(text), "\x00") {
		key, value, _ := strings.Cut(field, "=")
		if strings.ContainsAny(value, "\n\r") {
			continue
		}
		switch key {
		case "name":
			m.name = canonical(value)
		case "depends":
			for d := range strings.SplitSeq(value, ",") {
				if d != "" {
					m.depends = append(m.depends, canonical(d))
				}
			}
		case "alias":
			if value != "" && !strings.ContainsAny(value, " \t") {
				m.alias = append(m.alias, value)
			}
		case "softdep":
			m.softdep = append(m.softdep, strings.Join(strings.Fields(value), " "))
		case "vermagic":
			m.release, _, _ = strings.Cut(value, " ")
		}
	}
	return m, nil
}

// canonical is the one form of a module's name: dashes and underscores are the
// same to the kernel.
func canonical(name string) string { return strings.ReplaceAll(strings.TrimSpace(name), "-", "_") }
