package smart

import (
	"encoding/binary"
	"reflect"
	"regexp"
	"testing"
	"unsafe"

	"github.com/muster-hpc/muster/agent/facts"
)

// nvmeLog is a log page of health as a used disk has it.
func nvmeLog(warning byte, mediaErrors uint64) []byte {
	b := make([]byte, nvmeSize)
	b[0] = warning
	binary.LittleEndian.PutUint16(b[1:], 273+41) // K
	b[3], b[4], b[5] = 97, 10, 3                 // spare, its threshold, life used: %
	binary.LittleEndian.PutUint64(b[160:], mediaErrors)
	binary.LittleEndian.PutUint64(b[176:], 4711) // entries of the error log: refused commands, too
	return b
}

func TestNVMe(t *testing.T) {
	t.Parallel()
	for warning, says := range map[byte]string{
		0:         "",
		1 << 0:    "spare blocks",
		1 << 1:    "", // it is warm
		1 << 2:    "not reliable",
		1 << 3:    "read",
		1 << 4:    "power fails",
		1 << 5:    "persistent memory",
		1 << 6:    "", // of the future
		1<<3 | 1:  "spare blocks.*read",
		0b1100010: "persistent memory",
	} {
		h := parseNVMe("nvme0n1", nvmeLog(warning, 7))
		want := []facts.Errors{{What: "disk nvme0n1, media errors", Count: 7, Lost: true}}
		if !h.Told || (h.Failing == "") != (says == "") || !regexp.MustCompile(says).MatchString(h.Failing) || !reflect.DeepEqual(h.Errors, want) || !regexp.MustCompile("3 %.*97 %").MatchString(h.Wear) {
			t.Errorf("%07b: %+v", warning, h)
		}
	}
	huge := nvmeLog(0, 1)
	huge[170] = 1 // the counter has 128 bits
	if h := parseNVMe("nvme0n1", huge); h.Errors[0].Count != 1<<64-1 {
		t.Errorf("%+v", h)
	}
	for _, b := range [][]byte{nil, nvmeLog(4, 1)[:511], make([]byte, nvmeSize)} {
		if h := parseNVMe("nvme0n1", b); !reflect.DeepEqual(h, Health{}) {
			t.Errorf("%d bytes that say nothing: %+v", len(b), h)
		}
	}
}

// The kernel's structure has 88 bytes.
func TestHeader(t *testing.T) {
	t.Parallel()
	if n := unsafe.Sizeof(sgHeader{}); unsafe.Sizeof(uintptr(0)) == 8 && n != 88 {
		t.Errorf("%d bytes", n)
	}
}
