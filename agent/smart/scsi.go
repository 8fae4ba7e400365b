package smart

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/agent/facts"
)

// Log pages of SCSI: SPC-5 7.3.
const (
	pageWrite        = 0x02 // write error counters
	pageRead         = 0x03
	pageVerify       = 0x05
	pageExceptions   = 0x2f // informational exceptions: the disk's verdict
	uncorrected      = 0x06 // parameter of error counters
	failurePredicted = 0x5d // additional sense code
	longestPage      = 512  // what is read of one
)

// parameters reads a log page: its parameters by their code. What comes after a
// parameter that is cut off is not there.
func parameters(page byte, b []byte) map[uint16][]byte {
	if len(b) < 4 || b[0]&0x3f != page || b[0]&0x40 != 0 {
		return nil
	}
	b = b[4:min(len(b), 4+int(binary.BigEndian.Uint16(b[2:])))]
	out := map[uint16][]byte{}
	for len(b) >= 4 && len(b) >= 4+int(b[3]) {
		n := 4 + int(b[3])
		out[binary.BigEndian.Uint16(b)] = b[4:n]
		b = b[n:]
	}
	return out
}

// parseExceptions reads the page with the disk's verdict. told: it holds one.
func parseExceptions(b []byte) (failing string, told bool) {
	p := parameters(pageExceptions, b)[0]
	if len(p) < 2 {
		return "", false
	}
	if p[0] == failurePredicted && p[1] != 0xff { // ff: it was asked to say so, as a test
		return fmt.Sprintf("it will fail soon: failure prediction threshold exceeded (5dh/%02xh)", p[1]), true
	}
	return "", true // 0bh is a warning: its temperature
}

// parseUncorrected reads how many errors of a page of counters were not corrected.
func parseUncorrected(page byte, b []byte) (uint64, bool) {
	p := slices.Clone(parameters(page, b)[uncorrected])
	slices.Reverse(p) // highest byte first
	return number(p), len(p) > 0
}

// readSCSI asks a disk behind the kernel's SCSI: SATA or SAS.
func readSCSI(disk, path string) (Health, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return Health{}, err
	}
	defer unix.Close(fd)
	return askSCSI(disk, sg(fd))
}

// askSCSI finds out what a disk speaks, and asks it.
func askSCSI(disk string, ask asker) (Health, error) {
	inquiry := make([]byte, 36)
	if _, err := ask([]byte{0x12, 0, 0, 0, byte(len(inquiry)), 0}, inquiry); err != nil {
		return Health{}, err
	}
	if inquiry[0]&0x1f != 0 { // no disk
		return Health{}, nil
	}
	if string(inquiry[8:16]) == "ATA     " {
		return readATA(disk, ask)
	}
	return readSAS(disk, ask)
}

// readSAS asks for those pages that the disk says it has.
func readSAS(disk string, ask asker) (Health, error) {
	have, err := logPage(ask, 0)
	if err != nil || len(have) < 4 {
		return Health{}, err
	}
	have = have[4:min(len(have), 4+int(binary.BigEndian.Uint16(have[2:])))]
	var h Health
	if slices.Contains(have, pageExceptions) {
		b, err := logPage(ask, pageExceptions)
		if err != nil {
			return Health{}, err
		}
		h.Failing, h.Told = parseExceptions(b)
	}
	for _, k := range []struct {
		page byte
		what string
	}{{pageRead, "reads"}, {pageWrite, "writes"}, {pageVerify, "verifies"}} {
		if !slices.Contains(have, k.page) {
			continue
		}
		b, err := logPage(ask, k.page)
		if err != nil {
			return Health{}, err
		}
		if n, ok := parseUncorrected(k.page, b); ok {
			h.Errors = append(h.Errors, facts.Errors{What: "disk " + disk + ", " + k.what + " not corrected", Count: n, Lost: true})
		}
	}
	return h, nil
}

// logPage is LOG SENSE: cumulative values of a page. One that the disk does not give is
// empty.
func logPage(ask asker, page byte) ([]byte, error) {
	b := make([]byte, longestPage)
	_, err := ask([]byte{0x4d, 0, 1<<6 | page, 0, 0, 0, 0, longestPage >> 8, longestPage & 0xff, 0}, b)
	switch {
	case err == nil && b[0]&0x7f == page: // neither another one nor a subpage
		return b, nil
	case errors.Is(err, ErrSilent):
		return nil, ErrSilent
	}
	return nil, nil
}
