package admit

import (
	"fmt"

	"github.com/muster-hpc/muster"
)

// unit is how a quantity is written.
type unit int

const (
	plain unit = iota
	inBytes
	inBits
)

// people writes a value for reading: "7.8 GiB", "25 Gb/s", "4".
func (u unit) people(v int64) string {
	switch u {
	case inBytes:
		return scaled(v, 1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"})
	case inBits:
		return scaled(v, 1000, []string{"b/s", "Kb/s", "Mb/s", "Gb/s", "Tb/s"})
	}
	return fmt.Sprint(v)
}

func scaled(v int64, base float64, names []string) string {
	f, i := float64(v), 0
	for f >= base && i < len(names)-1 {
		f, i = f/base, i+1
	}
	if f == float64(int64(f)) {
		return fmt.Sprintf("%d %s", int64(f), names[i])
	}
	return fmt.Sprintf("%.1f %s", f, names[i])
}

// request writes a quantity as a request file does, rounded to three digits or
// more towards what more machines satisfy.
func (u unit) request(op muster.Op, v int64) string {
	names, base := []string{""}, int64(1000)
	switch u {
	case inBytes:
		names, base = []string{"B", "KiB", "MiB", "GiB", "TiB"}, 1024
	case inBits:
		names = []string{"b/s", "Kb/s", "Mb/s", "Gb/s", "Tb/s"}
	}
	i := 0
	for i < len(names)-1 && v != 0 && (v%base == 0 || v >= 1000*base) {
		if v%base != 0 && (op == muster.AtMost || op == muster.Less) {
			v += base
		}
		v, i = v/base, i+1
	}
	return fmt.Sprintf("%s%d%s", op, v, names[i])
}

// asked tells in words what a quantity wants.
func (u unit) asked(q muster.Quantity) string {
	v := u.people(q.Value)
	switch q.Op {
	case muster.AtLeast:
		return v + " or more"
	case muster.AtMost:
		return v + " or less"
	case muster.More:
		return "more than " + v
	case muster.Less:
		return "less than " + v
	}
	return "exactly " + v
}
