package jail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Argument is the first argument that makes a program call Enter.
const Argument = "vm-jail"

// orderFD is the descriptor from which Enter reads its order. What the program inherits comes
// after it, from FirstFD on.
const (
	orderFD = 3
	FirstFD = 4
)

// Order is what is to run in a jail.
type Order struct {
	// Program is a path below /usr.
	Program string   `json:"program"`
	Args    []string `json:"args"` // without the program
	// ID is the host's user and group, above 0, that nothing else has.
	ID int `json:"id"`
	// Files are those of the host that are shown in the jail, by their places in it: in /boot
	// alone. Others than their owner must be allowed to read them.
	Files map[string]string `json:"files,omitempty"`
	// KVM: there is a /dev/kvm.
	KVM bool `json:"kvm,omitempty"`
	// Devices of the PCI bus that it may have by VFIO.
	Devices []Device `json:"devices,omitempty"`
	// Locked is how many bytes of memory it may lock; 0: none.
	Locked int64 `json:"locked_bytes,omitempty"`
}

// Device is a device of the PCI bus that the driver vfio-pci has.
type Device struct {
	Address string `json:"address"`
	Group   int    `json:"iommu_group"`
}

func (o *Order) check() error {
	var errs []error
	if o.ID <= 0 {
		errs = append(errs, errors.New("id: the host's root runs no virtual machine"))
	}
	if !strings.HasPrefix(filepath.Clean(o.Program), "/usr/") {
		errs = append(errs, fmt.Errorf("program: %q is not below /usr", o.Program))
	}
	for at := range o.Files {
		if filepath.Clean(at) != at || filepath.Dir(at) != "/boot" {
			errs = append(errs, fmt.Errorf("files: %q is not a place in /boot", at))
		}
	}
	address := regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	for i, d := range o.Devices {
		if !address.MatchString(d.Address) || d.Group < 0 {
			errs = append(errs, fmt.Errorf("devices: %q in the IOMMU group %d is no PCI device", d.Address, d.Group))
		}
		if slices.ContainsFunc(o.Devices[:i], func(e Device) bool { return e.Address == d.Address }) {
			errs = append(errs, fmt.Errorf("devices: %s is there twice", d.Address))
		}
	}
	if o.Locked < 0 {
		errs = append(errs, errors.New("locked_bytes: must not be negative"))
	}
	return errors.Join(errs...)
}

// readOrder reads the one line of an order, and leaves the descriptor open: its other end is
// held by whoever started this process, for as long as that lives.
func readOrder(in io.Reader) (*Order, error) {
	var line []byte
	for one := make([]byte, 1); ; {
		n, err := in.Read(one)
		if n == 1 && one[0] == '\n' {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("who started it is gone: %w", err)
		}
		if line = append(line, one[:n]...); len(line) > 1<<20 {
			return nil, errors.New("the order is too long")
		}
	}
	o := &Order{}
	if err := json.Unmarshal(line, o); err != nil {
		return nil, err
	}
	return o, o.check()
}

// writeOrder is its other side.
func writeOrder(out *os.File, o *Order) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = out.Write(append(b, '\n'))
	return err
}
