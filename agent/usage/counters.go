package usage

import "strings"

// traffic sums bytes received and sent in /proc/net/dev: on the management
// interface, and on all others that reach outside.
func traffic(b []byte, n Node) (rx, tx, mgmtRx, mgmtTx int64) {
	for line := range strings.Lines(string(b)) {
		name, rest, ok := strings.Cut(line, ":")
		w := strings.Fields(rest)
		if !ok || len(w) < 9 {
			continue
		}
		name = strings.TrimSpace(name)
		r, t := number(w[0]), number(w[8])
		switch {
		case name == "lo":
		case name == n.Management && name != n.Message:
			mgmtRx, mgmtTx = mgmtRx+r, mgmtTx+t
		case n.Message == "" || name == n.Message || strings.HasPrefix(name, "msg"):
			rx, tx = rx+r, tx+t
		}
	}
	return rx, tx, mgmtRx, mgmtTx
}

// sector is the unit of /proc/diskstats, whatever the disk's own is.
const sector = 512

// diskstats sums bytes read and written on whole disks: a partition's are its
// disk's too, and a layer's are those of what is below it.
func diskstats(b []byte) (read, write int64) {
	for line := range strings.Lines(string(b)) {
		w := strings.Fields(line)
		if len(w) < 10 || !wholeDisk(w[2]) {
			continue
		}
		read += number(w[5]) * sector
		write += number(w[9]) * sector
	}
	return read, write
}

func wholeDisk(name string) bool {
	digits := strings.TrimRight(name, "0123456789")
	switch {
	case strings.HasPrefix(name, "nvme"), strings.HasPrefix(name, "mmcblk"):
		return !strings.HasSuffix(digits, "p")
	case strings.HasPrefix(name, "sd"), strings.HasPrefix(name, "vd"), strings.HasPrefix(name, "xvd"), strings.HasPrefix(name, "hd"):
		return digits == name
	}
	return false
}
