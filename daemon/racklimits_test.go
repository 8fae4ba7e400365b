package daemon

import (
	"testing"

	"github.com/muster-hpc/muster/metal/bootqueue"
)

// A rack has the limits of the first pattern that matches its name, or those of all.
func TestRackLimits(t *testing.T) {
	t.Parallel()
	with := func(window int) bootqueue.Limits {
		l := bootqueue.DefaultLimits()
		l.Window = window
		return l
	}
	all := with(20)
	c := Metal{Limits: &all, Racks: []RackLimits{{"gpu-*", with(8)}, {"gpu-1", with(9)}, {"r7", with(500)}}}
	for rack, want := range map[string]int{"gpu-1": 8, "gpu-": 8, "r7": 500, "r70": 20, "": 20} {
		if got := c.limits(rack).Window; got != want {
			t.Errorf("%q: %d, not %d", rack, got, want)
		}
	}
	if got := (Metal{}).limits("r1"); got != bootqueue.DefaultLimits() {
		t.Errorf("%+v", got)
	}
}

// Thousands of controllers can be spoken to where the host has the descriptors for it.
func TestControllerPlaces(t *testing.T) {
	t.Parallel()
	for files, want := range map[int]int{leastFiles: 64, 16384: 1024, wantedFiles: 4096, 1 << 20: 4096} {
		if got := controllerPlaces(files); got != want {
			t.Errorf("%d files: %d, not %d", files, got, want)
		}
	}
}
