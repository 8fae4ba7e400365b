package boot

import (
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

const goodLine = `BOOT_IMAGE=/vmlinuz console=ttyS0,115200 muster.server=https://10.0.0.1:7700/ ` +
	`muster.ca=sha256:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f muster.boot=b1a2c3d4 ` +
	`BOOTIF=01-52-54-00-AB-cd-01 modprobe.blacklist=nouveau,hid-x dyndbg="file a.c +p" quiet`

func TestCmdline(t *testing.T) {
	t.Parallel()
	s, err := ParseCmdline(goodLine + "\n")
	if err != nil {
		t.Fatal(err)
	}
	var sum [32]byte
	for i := range sum {
		sum[i] = byte(i)
	}
	want := Settings{Server: "https://10.0.0.1:7700", Authority: sum, Boot: "b1a2c3d4", MAC: "52:54:00:ab:cd:01", Blacklist: []string{"hid_x", "nouveau"}}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("%+v", s)
	}
	if s, err = ParseCmdline(goodLine + " muster.mac=52:54:00:00:00:09"); err != nil || s.MAC != "52:54:00:00:00:09" {
		t.Errorf("%+v: %v", s, err)
	}
	_, err = ParseCmdline("quiet")
	for _, field := range []string{"muster.server: is missing", "muster.ca: is missing", "muster.boot: is missing"} {
		if muster.CodeOf(err) != muster.EInvalid || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for says, change := range map[string][2]string{
		"muster.server: is not":  {"https://10.0.0.1:7700/", "http://10.0.0.1"},
		"muster.server: is not ": {"https://10.0.0.1:7700/", "https://u:p@10.0.0.1"},
		"muster.ca: is not":      {"sha256:0001", "sha256:01"},
		"muster.boot: is no":     {"b1a2c3d4", "x"},
		"BOOTIF: is no":          {"01-52-54", "02-52-54"},
		"said twice":             {"quiet", "muster.boot=b9999999"},
	} {
		if _, err := ParseCmdline(strings.Replace(goodLine, change[0], change[1], 1)); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(says)) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func FuzzCmdline(f *testing.F) {
	f.Add(goodLine)
	f.Add(`a="b c muster.boot= BOOTIF=`)
	f.Fuzz(func(t *testing.T, line string) {
		s, err := ParseCmdline(line)
		if err == nil && (!strings.HasPrefix(s.Server, "https://") || len(s.Boot) < 8 || s.Authority == [32]byte{} && !strings.Contains(line, strings.Repeat("0", 64))) {
			t.Fatalf("%+v", s)
		}
	})
}
