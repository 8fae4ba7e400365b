package smart

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/agent/facts"
)

// pages of a SAS disk: the sixth parameter of an error counter is what was not corrected.
func sasPages(code, qualifier byte) map[byte][]byte {
	return map[byte][]byte{
		0: {0, 0, 0, 5, 0, 2, 3, 5, 0x2f},
		2: {2, 0, 0, 10, 0, 6, 0x40, 6, 0, 0, 0, 0, 0, 0},
		3: {
			3, 0, 0, 22,
			0, 3, 0x40, 4, 0x11, 0x22, 0x33, 0x44, // corrected by its own codes: as many as it likes
			0, 6, 0x40, 2, 0x01, 0x02,
			0x80, 0, 0x40, 4, 1, 2, 3, 4,
		},
		5:    {5, 0, 0, 8, 0, 3, 0x40, 4, 0, 0, 0, 1},
		0x2f: {0x2f, 0, 0, 8, 0, 0, 3, 4, code, qualifier, 38, 0},
	}
}

// sasDisk answers as a SAS disk does, or one of a controller that gives none of its
// pages (nil).
func sasDisk(pages map[byte][]byte, fault map[byte]error) asker {
	return func(cdb, in []byte) ([]byte, error) {
		switch cdb[0] {
		case 0x12:
			copy(in[8:], "MAKER   SAS DISK")
			return nil, nil
		case 0x4d:
			b, ok := pages[cdb[2]&0x3f]
			if err := fault[cdb[2]&0x3f]; err != nil {
				return nil, err
			}
			if ok && cdb[2]>>6 == 1 {
				copy(in, b)
				return nil, nil
			}
		}
		return []byte{0x70, 0, 5}, errRefused
	}
}

func TestSAS(t *testing.T) {
	t.Parallel()
	counts := []facts.Errors{
		{What: "disk sdb, reads not corrected", Count: 0x102, Lost: true}, {What: "disk sdb, writes not corrected", Lost: true},
	}
	for name, c := range map[string]struct {
		code, qualifier byte
		failing         string
	}{
		"well":    {0, 0, ""},
		"warm":    {0x0b, 1, ""},
		"failing": {0x5d, 0x10, "5dh/10h"},
		"a test":  {0x5d, 0xff, ""},
	} {
		h, err := askSCSI("sdb", sasDisk(sasPages(c.code, c.qualifier), nil))
		if err != nil || !h.Told || !strings.Contains(h.Failing, c.failing) || (h.Failing == "") != (c.failing == "") || !reflect.DeepEqual(h.Errors, counts) {
			t.Errorf("%s: %+v %v", name, h, err)
		}
	}
	if h, err := askSCSI("sdb", sasDisk(nil, nil)); err != nil || !reflect.DeepEqual(h, Health{}) {
		t.Errorf("a disk of a controller: %+v %v", h, err)
	}
	if h, err := askSCSI("sdb", sasDisk(sasPages(0x5d, 0), map[byte]error{0x2f: errRefused})); err != nil || h.Told || len(h.Errors) != 2 {
		t.Errorf("no verdict: %+v %v", h, err)
	}
	for page := range sasPages(0, 0) {
		if _, err := askSCSI("sdb", sasDisk(sasPages(0, 0), map[byte]error{page: ErrSilent})); !errors.Is(err, ErrSilent) {
			t.Errorf("page %02x does not come: %v", page, err)
		}
	}
	tape := func(_, in []byte) ([]byte, error) { in[0] = 1; return nil, nil }
	if h, err := askSCSI("sdb", tape); err != nil || !reflect.DeepEqual(h, Health{}) {
		t.Errorf("no disk: %+v %v", h, err)
	}
}

// What is no disk, or cannot be asked, has no health and is no error.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sr0", "vda", "mmcblk0", "nvme-none", "sd-none", "../etc/passwd", "null"} {
		if h, err := Read(name); err != nil || !reflect.DeepEqual(h, Health{}) {
			t.Errorf("%s: %+v %v", name, h, err)
		}
	}
}
