package host

import (
	"context"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Source is where a host is read.
type Source struct {
	// FS holds proc, sys and dev. Links in it are read, and may lead anywhere.
	FS fs.FS
	// Executes tries whether KVM executes machines, beyond what files show. Nil: not tried.
	Executes func(context.Context) bool
	// Firmware is the firmware version of a network card, by the name of its interface. Nil, or
	// "": not known.
	Firmware func(name string) string
	// QEMU is what QEMU says of its version. Nil: not asked.
	QEMU func(context.Context) (string, error)
	// Volumes says why there is no program here that serves volumes to virtual machines; nil: there is
	// one. Not asked if it is nil itself.
	Volumes func() error
}

const (
	mostText    = 8 << 20 // of a file
	mostEntries = 1 << 14 // of a directory
)

// text is a file without the space around it; one that cannot be read is empty.
func (s Source) text(name string) string { return strings.TrimSpace(string(s.bytes(name))) }

func (s Source) bytes(name string) []byte {
	f, err := s.FS.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err != nil || st.IsDir() {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(f, mostText))
	if err != nil {
		return nil
	}
	return b
}

// number is the number in a file; ok reports whether there is one, of zero or more.
func (s Source) number(name string) (n int64, ok bool) {
	n, err := strconv.ParseInt(s.text(name), 10, 64)
	return max(n, 0), err == nil && n >= 0
}

func (s Source) exists(name string) bool {
	if _, err := fs.Lstat(s.FS, name); err == nil {
		return true
	}
	_, err := fs.Stat(s.FS, name)
	return err == nil
}

// names are the entries of a directory, in order.
func (s Source) names(dir string) []string {
	list, err := fs.ReadDir(s.FS, dir)
	if err != nil {
		return nil
	}
	list = list[:min(len(list), mostEntries)]
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names
}

// target is the last part of where a link leads; "" where there is none.
func (s Source) target(link string) string {
	to, err := fs.ReadLink(s.FS, link)
	if err != nil {
		return ""
	}
	return path.Base(to)
}

const mostCPU = 1 << 14

// parseList reads a list as the kernel writes it, 0-3,8, as far as it can be one.
func parseList(text string) []int {
	var list []int
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		from, to, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		b := a
		if err == nil && ranged {
			b, err = strconv.Atoi(to)
		}
		if err != nil || a < 0 || b < a || b >= mostCPU || len(list)+b-a >= mostCPU {
			return list
		}
		for ; a <= b; a++ {
			list = append(list, a)
		}
	}
	return list
}

// parseSize reads a size as the kernel writes it, 32K, 2048kB, in bytes; 0 if it is none.
func parseSize(text string) int64 {
	text = strings.TrimSuffix(text, "B")
	digits := strings.TrimRight(text, "kKMG")
	shift, ok := map[string]uint{"": 0, "k": 10, "K": 10, "M": 20, "G": 30}[text[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 32)
	if !ok || err != nil || n < 0 {
		return 0
	}
	return n << shift
}

// memTotal is the memory in a meminfo, of a host or of a memory node, in bytes.
func memTotal(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		before, after, ok := strings.Cut(line, "MemTotal:")
		if w := strings.Fields(after); ok && len(w) > 0 && (before == "" || strings.HasPrefix(before, "Node ")) {
			if n, err := strconv.ParseInt(w[0], 10, 64); err == nil && n >= 0 && n < 1<<43 {
				return n << 10
			}
		}
	}
	return 0
}
