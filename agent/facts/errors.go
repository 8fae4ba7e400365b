package facts

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Errors is what has been counted of one kind of error: by the kernel since it started,
// or by a disk since it was made.
type Errors struct {
	What  string // for people: memory of mc0
	Count uint64
	// Lost: each of them is data that were lost, or an operation that failed. The others
	// were mended on the way.
	Lost bool
}

// Errors reads the counters of memory (EDAC), PCIe (AER), disks and network cards. A
// machine that has none of them counts none.
func (s Source) Errors() []Errors {
	var out []Errors
	add := func(what, file string, lost bool) {
		if n, ok := s.count(file); ok {
			out = append(out, Errors{what, n, lost})
		}
	}
	for _, mc := range s.list("sys/devices/system/edac/mc", "mc") {
		at := "sys/devices/system/edac/mc/" + mc + "/"
		add("memory of "+mc+", not corrected", at+"ue_count", true)
		add("memory of "+mc+", corrected", at+"ce_count", false)
	}
	for _, d := range s.list("sys/bus/pci/devices", "") {
		at := "sys/bus/pci/devices/" + d + "/"
		for _, kind := range []struct {
			file string
			lost bool
		}{{"fatal", true}, {"nonfatal", true}, {"correctable", false}} {
			if n, ok := s.total(at + "aer_dev_" + kind.file); ok {
				out = append(out, Errors{"PCIe " + d + ", " + kind.file, n, kind.lost})
			}
		}
	}
	for _, d := range s.list("sys/block", "") {
		add("disk "+d+", failed commands", "sys/block/"+d+"/device/ioerr_cnt", true)
	}
	for _, n := range s.list("sys/class/net", "") {
		at := "sys/class/net/" + n + "/"
		if exists(s.path(at + "device")) { // a card, and nothing that is made of software
			add("network "+n+", bad frames", at+"statistics/rx_crc_errors", false)
		}
	}
	return out
}

// list names what a directory has, by a prefix.
func (s Source) list(dir, prefix string) []string {
	entries, err := os.ReadDir(s.path(dir))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			out = append(out, e.Name())
		}
	}
	return out
}

// count reads a file with one number, in decimal or as 0x1f.
func (s Source) count(file string) (uint64, bool) {
	n, err := strconv.ParseUint(s.text(file), 0, 64)
	return n, err == nil
}

// total reads the last line of a file of AER: TOTAL_ERR_FATAL 3.
func (s Source) total(file string) (uint64, bool) {
	f, err := os.Open(filepath.Clean(s.path(file)))
	if err != nil {
		return 0, false
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if ok && strings.HasPrefix(name, "TOTAL_ERR_") {
			n, err := strconv.ParseUint(value, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
