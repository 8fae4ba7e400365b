package pcinames

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestAccelerator(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"10de:2330": "NVIDIA H100 SXM5 80GB",
		"10DE:20B0": "NVIDIA A100 SXM4 40GB",
		"1002:74a1": "AMD Instinct MI300X",
		"8086:0bd5": "Intel Data Center GPU Max 1550",
		"10de:ffff": "", "10de:": "", "": "", "# Names of": "", "\n10de:2330": "", "10de:233": "",
	} {
		if got := Accelerator(number); got != want {
			t.Errorf("%q: %q, want %q", number, got, want)
		}
	}
}

func TestOfModalias(t *testing.T) {
	t.Parallel()
	for modalias, want := range map[string]string{
		"pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00": "NVIDIA H100 SXM5 80GB",
		"pci:v000010DEd0000FFFFsv000010DEsd000016C1bc03sc02i00": "10de:ffff",
		"pci:v000010DEd000": "pci:v000010DEd000", "virtio:d00000001v1": "virtio:d00000001v1", "": "",
	} {
		if got := OfModalias(modalias); got != want {
			t.Errorf("%q: %q, want %q", modalias, got, want)
		}
	}
}

// Each line can be found, and a number stands there once.
func TestTable(t *testing.T) {
	t.Parallel()
	line := regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{4} [A-Z][ -~]{3,90}$`)
	lines := strings.Split(strings.TrimSuffix(accelerators, "\n"), "\n")
	var numbers []string
	for _, l := range lines {
		if strings.HasPrefix(l, "#") {
			continue
		}
		if !line.MatchString(l) {
			t.Errorf("%q", l)
		}
		numbers = append(numbers, l[:9])
	}
	if len(numbers) < 1000 || !slices.IsSorted(numbers) || len(slices.Compact(slices.Clone(numbers))) != len(numbers) {
		t.Errorf("%d numbers, not each once and in order", len(numbers))
	}
}

func FuzzAccelerator(f *testing.F) {
	f.Add("10de:2330")
	f.Fuzz(func(t *testing.T, number string) {
		_ = OfModalias(number)
		if name := Accelerator(number); strings.ContainsAny(name, "\n#") {
			t.Errorf("%q: %q", number, name)
		}
	})
}
