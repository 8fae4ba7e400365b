package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

func TestConsoles(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"":                        {"quiet"},
		"ttyS0":                   {"quiet", "console=ttyS0"},
		"tty0,ttyS0,115200n8":     {"quiet", "console=tty0", "console=ttyS0,115200n8"},
		"ttyS1,9600,hvc0,ttyAMA0": {"quiet", "console=ttyS1,9600", "console=hvc0", "console=ttyAMA0"},
		"115200":                  {"quiet", "console=115200"},
	} {
		if got := consoles(in); !slices.Equal(got, want) {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// Everything that is wrong with the flags is said at once.
func TestMetalFlags(t *testing.T) {
	t.Parallel()
	f := metalFlags{net: "eno2", unknown: "shoot", trust: "blind", vlans: "9-3", console: "tty0", ranges: []string{"10.0.0.9-10.0.0.1"}, discovery: []string{"x"}, rate: -1, window: 0, mtu: 9, args: []string{"iommu=pt", "init=/bin/sh", "muster.boot=x", "a b"}}
	_, err := f.read()
	if muster.CodeOf(err) != muster.EInvalid {
		t.Fatal(err)
	}
	text := ""
	var told *muster.Error
	if !errors.As(err, &told) {
		t.Fatal(err)
	}
	for _, p := range told.Problems {
		text += p.Field + ": " + p.Message + "\n"
	}
	for _, want := range []string{"--metal-unknown", "--metal-min-trust", "--metal-vlans", "--metal-range", "--metal-discovery-range", "--metal-mtu", `"init=/bin/sh" says`, `"muster.boot=x" says`, `"a b" cannot`, "--rack-power-on-rate"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not among\n%s", want, text)
		}
	}
	f = metalFlags{net: "eno2", unknown: "ignore", trust: "tpm", vlans: "100-1999", console: "ttyS0", rate: 4, window: 8, args: []string{"iommu=pt"}}
	m, err := f.read()
	if err != nil || !m.Ignore || m.Least != muster.TrustTPM || m.VLANs != [2]int{100, 1999} || m.Limits.Window != 8 || !slices.Equal(m.Args, []string{"iommu=pt", "quiet", "console=ttyS0"}) {
		t.Errorf("%+v, %v", m, err)
	}
}

// Racks have limits of their own, by name or by pattern; what is not said is as in every
// rack, and all that is wrong is said.
func TestRackLimits(t *testing.T) {
	t.Parallel()
	f := metalFlags{net: "eno2", unknown: "ignore", trust: "tpm", vlans: "100-1999", console: "ttyS0", rate: 4, window: 64,
		racks: []string{"gpu-*,max-booting=8,power-on-rate=0.5", "r7,max-booting=500", "r8,power-on-rate=40"}}
	m, err := f.read()
	if err != nil || len(m.Racks) != 3 {
		t.Fatalf("%+v, %v", m.Racks, err)
	}
	for i, want := range []struct {
		name          string
		rate          float64
		burst, window int
	}{{"gpu-*", 0.5, 4, 8}, {"r7", 4, 4, 500}, {"r8", 40, 40, 64}} {
		r := m.Racks[i]
		if r.Name != want.name || r.Limits.Rate != want.rate || r.Limits.Burst != want.burst || r.Limits.Window != want.window {
			t.Errorf("%+v, want %+v", r, want)
		}
	}
	f.racks = []string{"", "max-booting=8", "r1,max-booting=x", "r1,power-on-rate=0", "r1,weight=3"}
	_, err = f.read()
	var told *muster.Error
	if !errors.As(err, &told) || len(told.Problems) != len(f.racks) {
		t.Errorf("%v", err)
	}
}
