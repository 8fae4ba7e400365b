package device

import (
	"bytes"
	"strings"
	"testing"
)

func TestNamespaceName(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"nvme0n1": "nvme0n1", "nvme10c2n33": "nvme10n33", "nvme0": "", "nvme0n": "", "nvmen1": "", "nvme0cn1": "", "nvme0c1": "", "nvme0n1p1": "", "ng0n1": "", "hwmon3": "", "": "",
	} {
		if got, ok := namespaceName(entry); got != want || ok != (want != "") {
			t.Errorf("%q is %q, %v", entry, got, ok)
		}
	}
}

func TestParseController(t *testing.T) {
	t.Parallel()
	b := make([]byte, identifySize)
	copy(b[4:], "S1234               A model                                 1.2     ")
	d, manages, err := parseController(b)
	if err != nil || manages || d.Serial != "S1234" || d.Model != "A model" || d.Firmware != "1.2" {
		t.Errorf("%+v, %v, %v", d, manages, err)
	}
	b[256] = 1 << 3
	if _, manages, _ = parseController(b); !manages {
		t.Error("it manages namespaces")
	}
	if _, _, err := parseController(b[:100]); err == nil {
		t.Error("100 bytes are no controller")
	}
	copy(b[4:24], strings.Repeat("\x00", 20))
	if _, _, err := parseController(b); err == nil {
		t.Error("a disk without a serial number could be any")
	}
}

func TestMountedAt(t *testing.T) {
	t.Parallel()
	mounts := []byte("21 1 259:1 / / rw - ext4 /dev/root rw\n30 21 0:44 /sub /data rw,x shared:1 - btrfs /dev/nvme1n1p2 rw\nshort\n")
	for _, c := range [][3]string{{"259:1", "/dev/x", "/"}, {"259:9", "/dev/nvme1n1p2", "/data"}, {"259:9", "/dev/nvme1n1", ""}} {
		if got := mountedAt(mounts, c[0], c[1]); got != c[2] {
			t.Errorf("%v: %q", c, got)
		}
	}
}

func FuzzController(f *testing.F) {
	f.Add(bytes.Repeat([]byte{'x'}, identifySize))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		d, _, err := parseController(b)
		if (err == nil) != (d.Serial != "") || strings.ContainsFunc(d.Serial+d.Model+d.Firmware, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%+v, %v", d, err)
		}
		for _, id := range parseIDs(b) {
			if id == 0 {
				t.Error("0 is no namespace")
			}
		}
		_ = mountedAt(b, "259:0", "/dev/nvme0n1")
		_ = swapped(b, "/dev/nvme0n1")
	})
}
