package usage

import (
	"bytes"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// processes is a sum over /proc. Times and bytes include children that are
// dead and were waited for: the kernel adds theirs to their parent's.
type processes struct {
	count     int
	running   int // or waiting for a disk
	user      int64
	system    int64 // ticks
	anonymous int64 // bytes
	diskRead  int64
	diskWrite int64
}

// maxProcesses bounds the work of a sample.
const maxProcesses = 1 << 15

// processes walks over /proc. On a machine of its own only their number is
// wanted.
func (s *Sampler) processes() processes {
	var p processes
	dir, err := os.Open(s.path("proc"))
	if err != nil {
		return p
	}
	defer func() { _ = dir.Close() }()
	fd := int(dir.Fd())
	page := int64(os.Getpagesize())
	for p.count < maxProcesses {
		names, err := dir.Readdirnames(256)
		for _, n := range names {
			if n == "" || n[0] < '1' || n[0] > '9' {
				continue
			}
			if !s.slice {
				p.count++
				continue
			}
			st, ok := parsePID(s.readAt(fd, n+"/stat"))
			if !ok {
				continue // it ended meanwhile
			}
			p.count++
			if st.state == 'R' || st.state == 'D' {
				p.running++
			}
			p.user += st.user
			p.system += st.system
			if !s.memoryGroup {
				p.anonymous += parseStatm(s.readAt(fd, n+"/statm")) * page
			}
			r, w := parseIO(s.readAt(fd, n+"/io"))
			p.diskRead, p.diskWrite = p.diskRead+r, p.diskWrite+w
		}
		if err != nil {
			break
		}
	}
	// The sampler itself runs while it looks; it is not the node's load.
	p.running = max(0, p.running-1)
	return p
}

type pidStat struct {
	state        byte
	user, system int64
}

// parsePID reads /proc/PID/stat. The name in brackets may hold anything, so
// the fields are counted from the last bracket.
func parsePID(b []byte) (pidStat, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return pidStat{}, false
	}
	var st pidStat
	rest := b[i+1:]
	// state is field 3; utime, stime, cutime, cstime are 14 to 17.
	for field := 3; field <= 17; field++ {
		var w []byte
		if w, rest = word(rest); len(w) == 0 {
			return pidStat{}, false
		}
		switch field {
		case 3:
			st.state = w[0]
		case 14, 16:
			st.user += digits(w)
		case 15, 17:
			st.system += digits(w)
		}
	}
	return st, true
}

// parseStatm returns the anonymous pages of /proc/PID/statm: resident less
// shared.
func parseStatm(b []byte) int64 {
	_, b = word(b)
	resident, b := word(b)
	shared, _ := word(b)
	return max(0, digits(resident)-digits(shared))
}

// parseIO returns the bytes of /proc/PID/io that reached a disk.
func parseIO(b []byte) (read, write int64) {
	for len(b) > 0 {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte{'\n'})
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case "read_bytes":
			read += digits(value)
		case "write_bytes":
			write += digits(value)
		case "cancelled_write_bytes":
			write -= digits(value)
		}
	}
	return read, max(0, write)
}

// word cuts the first word off b.
func word(b []byte) (first, rest []byte) {
	i := 0
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	j := i
	for j < len(b) && b[j] > ' ' {
		j++
	}
	return b[i:j], b[j:]
}

// digits reads a count; what is not one is 0.
func digits(b []byte) int64 {
	if len(b) > 18 {
		return 0
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// tmpfsUsed is what the machine's tmpfs hold, each counted once. The writable
// layer of its root overlay is one of them, and shows under other names too
// (files bound over those of /proc), so equal figures are taken for the same
// file system.
func (s *Sampler) tmpfsUsed() int64 {
	type figures struct{ blocks, free, files, filesFree uint64 }
	seen := map[figures]bool{}
	var sum int64
	for line := range strings.Lines(string(s.read("proc/self/mountinfo"))) {
		left, right, ok := strings.Cut(line, " - ")
		w, kind := strings.Fields(left), strings.Fields(right)
		if !ok || len(w) < 5 || len(kind) < 1 || kind[0] != "tmpfs" && (kind[0] != "overlay" || w[4] != "/") {
			continue
		}
		var st unix.Statfs_t
		// The statfs of an overlay is that of its writable layer.
		if unix.Statfs(s.path(w[4]), &st) != nil {
			continue
		}
		f := figures{st.Blocks, st.Bfree, st.Files, st.Ffree}
		if !seen[f] {
			seen[f] = true
			sum += int64(st.Blocks-st.Bfree) * st.Bsize
		}
	}
	return sum
}
