package lab

import (
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
)

// Defaults of a class that says nothing.
const (
	DefaultCores  = 1
	DefaultMemory = 1 << 30
	DefaultDisk   = 8 << 30
	DefaultClass  = "standard"
)

// ParseClass reads "4" or "2,class=big,cores=2,memory=2GiB,disk=16GiB"; what is not
// said is as in base.
func ParseClass(text string, base Class) (Class, error) {
	c := base
	parts := strings.Split(text, ",")
	n, err := strconv.Atoi(strings.TrimSpace(parts[0]))
	if err != nil {
		return c, muster.Errorf(muster.EInvalid, "--machines %s does not begin with a number", text).WithHint("write it like 4, or 2,class=big,cores=2,memory=2GiB")
	}
	c.Count = n
	e := muster.Errorf(muster.EInvalid, "--machines %s cannot be read", text).WithHint("write it like 4, or 2,class=big,cores=2,memory=2GiB")
	for _, p := range parts[1:] {
		key, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		var err error
		switch key {
		case "class":
			c.Name = value
		case "cores":
			c.Cores, err = strconv.Atoi(value)
			if err != nil {
				err = muster.Errorf(muster.EInvalid, "%q is not a number", value)
			}
		case "sockets":
			c.Sockets, err = strconv.Atoi(value)
			if err != nil {
				err = muster.Errorf(muster.EInvalid, "%q is not a number", value)
			}
		case "memory":
			c.Memory, err = spec.ParseBytes(value)
		case "disk":
			c.Disk, err = spec.ParseBytes(value)
		case "nvme":
			c.NVMe, err = spec.ParseBytes(value)
		default:
			err = muster.Errorf(muster.EInvalid, "unknown key; use class, cores, sockets, memory, disk, nvme")
		}
		if err != nil {
			e.Problems = append(e.Problems, muster.Problem{Field: key, Message: err.Error()})
		}
	}
	if len(e.Problems) > 0 {
		return c, e
	}
	return c, nil
}
