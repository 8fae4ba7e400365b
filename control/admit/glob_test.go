package admit

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

func TestGlobs(t *testing.T) {
	t.Parallel()
	const epyc = "AMD EPYC 7763 64-Core Processor"
	var g globs
	for _, c := range []struct {
		pattern, name string
		model, want   bool
	}{
		{"EPYC*", epyc, true, true},
		{"epyc*", epyc, true, true},
		{"EPYC*", epyc, false, false},
		{"AMD*", epyc, false, true},
		{"7763", epyc, true, true},
		{"763*", epyc, true, false},
		{"EPYC", epyc, false, false},
		{"EPYC 77??*", epyc, true, true},
		{"Xeon*", "Intel(R) Xeon(R) Gold 6130", true, true},
		{"*", "", false, true},
		{"", "", false, true},
		{"a*b*c", "axxbxxbc", false, true},
		{strings.Repeat("*a", 64), strings.Repeat("a", 63), false, false},
	} {
		f := g.name
		if c.model {
			f = g.model
		}
		if got := f(c.pattern, c.name); got != c.want {
			t.Errorf("%q %q: %v", c.pattern, c.name, got)
		}
	}
}

func TestDrivers(t *testing.T) {
	t.Parallel()
	d := newDrivers([]string{"pci:v00008086d*sv*", "usb:v0BDAp8153d30[0-9]*", "virtio:d00000001v*"})
	for alias, want := range map[string]bool{
		"pci:v00008086d00001521sv1": true, "pci:v00001234d00001521sv1": false, "usb:v0BDAp8153d3012": true, "usb:v0BDAp8153d31": false, "virtio:d00000001v1": true, "": false,
	} {
		if got := d.has(alias); got != want || d.has(alias) != got {
			t.Errorf("%q: %v", alias, got)
		}
	}
	if got := d.missing([]string{"virtio:d00000001v1", "acpi:X", "acpi:Y"}); !slices.Equal(got, []string{"acpi:X", "acpi:Y"}) {
		t.Error(got)
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		got, want string
	}{
		{inBytes.people(64 << 30), "64 GiB"},
		{inBytes.people(3 << 29), "1.5 GiB"},
		{inBits.people(25e9), "25 Gb/s"},
		{plain.people(4), "4"},
		{inBytes.request(muster.AtLeast, 64<<30), ">=64GiB"},
		{inBytes.request(muster.AtLeast, 900<<20), ">=900MiB"},
		{inBytes.request(muster.AtLeast, 1<<40+5), ">=1TiB"},
		{inBytes.request(muster.AtMost, 1<<30+5), "<=1025MiB"},
		{inBytes.request(muster.AtLeast, 0), ">=0B"},
		{inBits.request(muster.AtLeast, 10e9), ">=10Gb/s"},
		{plain.request(muster.AtLeast, 2), ">=2"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestUndriven(t *testing.T) {
	t.Parallel()
	const nvidia, amd, disk = "pci:v000010DEd00002330sv1sd1bc03sc02i00", "pci:v00001002d000074A1sv1sd1bc12sc00i00", "pci:v00001234d00000001sv1sd1bc01sc08i02"
	images := []*muster.Image{{}, {Modaliases: []string{"pci:v00001002d000074A1sv*sd*bc*sc*i*"}}}
	if got := Undriven(images, []string{nvidia, amd, disk, nvidia}); !slices.Equal(got, []string{nvidia}) {
		t.Error(got)
	}
	if got := Undriven(nil, []string{disk, amd}); !slices.Equal(got, []string{amd}) {
		t.Error(got)
	}
}

// Who is refused for lack of a driver learns which devices have none.
func TestDevicesWithoutDriver(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.image(muster.Spec{}, &muster.Image{Modaliases: []string{"virtio:d00000001v*"}}, nil)
	c := b.list[len(b.list)-1]
	m := &muster.Machine{Facts: muster.Facts{Modalias: []string{"pci:nvme", "virtio:d00000001v1"}}}
	if c.pass(m) {
		t.Error("it passed")
	}
	if got := c.explain([]*muster.Machine{m}); !strings.HasSuffix(got, " pci:nvme") {
		t.Error(got)
	}
}
