package sysinfo

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/muster-hpc/muster"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=1234 muster.token=secret quiet nohz_full=2-3 mitigations=off isolcpus=2-3 hugepagesz=1G hugepages=4\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
		"sys/class/dmi/id/bios_vendor":                                    "Dell Inc.\n", "sys/class/dmi/id/bios_version": "2.15.1\n", "sys/class/dmi/id/bios_date": "03/04/2024\n",
		"sys/devices/system/cpu/smt/control": "on\n",
		"sys/class/net/lo/mtu":               "65536\n",
		"sys/class/net/msg0/mtu":             "9000\n", "sys/class/net/msg0/operstate": "up\n",
		"sys/class/net/eno2/mtu": "1500\n", "sys/class/net/eno2/operstate": "down\n",
	}
	got := source(recorded(t, "server", files), eight()...).Read()
	if want := []string{"hugepages=4", "hugepagesz=1G", "isolcpus=2-3", "mitigations=off", "nohz_full=2-3"}; !reflect.DeepEqual(got.Options, want) {
		t.Errorf("options = %q", got.Options)
	}
	if got.ClockSource != "tsc" || got.Firmware != "Dell Inc. 2.15.1 03/04/2024" || got.SMT != "on" || !reflect.DeepEqual(got.MTU, []string{"eth0 9000", "msg0 9000"}) {
		t.Errorf("%+v", got)
	}
}

func TestMicrocode(t *testing.T) {
	t.Parallel()
	const text = "processor\t: 0\nmicrocode\t: 0x2b\n\nprocessor\t: 1\nmicrocode\t: 0x2b\n\nprocessor\t: 2\nmicrocode\t: 0x1a\n"
	for want, cpus := range map[string][]int{"0x2b": {0, 1}, "0x1a, 0x2b": {1, 2}, "": {7}} {
		if got := microcode(text, cpus); got != want {
			t.Errorf("%v: %q, not %q", cpus, got, want)
		}
	}
}

func FuzzSettings(f *testing.F) {
	f.Add("quiet isolcpus=1 isolcpus=2 mitigations=off", "processor: 0\nmicrocode: 0x1\n")
	f.Fuzz(func(t *testing.T, line, cpuinfo string) {
		options := kernelOptions(line)
		if len(options) > mostOptions {
			t.Fatalf("%d options", len(options))
		}
		for _, o := range options {
			if len(o) > 200 || !strings.Contains(line, o) {
				t.Fatalf("%q of %q", o, line)
			}
		}
		c := muster.TestEnvironment{Options: options, Microcode: microcode(cpuinfo, []int{0})}.Bounded()
		if len(c.Microcode) > 256 || !utf8.ValidString(c.Microcode) {
			t.Fatalf("%q", c.Microcode)
		}
	})
}
