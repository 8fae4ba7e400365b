package slurm

import (
	"strconv"
	"strings"
)

// release is a release of Slurm as year and month: 24.11.5 is 2411.
type release int

// parseRelease reads "24.11.5" or a distribution's "22.05.8-4+deb12u3". What
// it cannot read counts as the oldest release, whose settings all others know.
func parseRelease(version string) release {
	year, rest, ok := strings.Cut(version, ".")
	if !ok {
		return 0
	}
	month, _, _ := strings.Cut(rest, ".")
	month, _, _ = strings.Cut(month, "-")
	y, err1 := strconv.Atoi(year)
	m, err2 := strconv.Atoi(month)
	if err1 != nil || err2 != nil || y < 0 || y > 99 || m < 1 || m > 12 {
		return 0
	}
	return release(y*100 + m)
}

// hasCgroupDisabled reports whether cgroup.conf knows CgroupPlugin=disabled.
func (r release) hasCgroupDisabled() bool { return r >= 2311 }
