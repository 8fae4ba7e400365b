package device

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster/internal/nvme"
	"github.com/muster-hpc/muster/vm/pci"
)

// nvmeDriver is the kernel's driver of NVMe.
const nvmeDriver = "nvme"

// Disk is what an NVMe is, so that it is not taken for another: its controller, and the namespaces of it.
type Disk struct {
	Serial     string      `json:"serial"`
	Model      string      `json:"model"`
	Firmware   string      `json:"firmware"`
	Namespaces []Namespace `json:"namespaces"`
}

// Namespace is one disk of an NVMe.
type Namespace struct {
	ID    int   `json:"id"`
	Size  int64 `json:"size_bytes"`
	Block int   `json:"block_bytes"`
}

// seen is a disk that the host's driver has, with the names of its namespaces as block devices.
type seen struct {
	Disk
	names map[int]string
}

// differs is what of a disk is not as it was; "": nothing.
func (d Disk) differs(was Disk) string {
	for _, c := range [][3]string{{"serial number", d.Serial, was.Serial}, {"model", d.Model, was.Model}, {"firmware", d.Firmware, was.Firmware}} {
		if c[1] != c[2] {
			return fmt.Sprintf("its %s is %q, and was %q", c[0], c[1], c[2])
		}
	}
	if !slices.EqualFunc(d.Namespaces, was.Namespaces, func(a, b Namespace) bool { return a.ID == b.ID && a.Size == b.Size && a.Block == b.Block }) {
		return fmt.Sprintf("it has %s, and had %s", list(d.Namespaces), list(was.Namespaces))
	}
	return ""
}

func list(l []Namespace) string {
	var text []string
	for _, n := range l {
		text = append(text, fmt.Sprintf("namespace %d of %d bytes in blocks of %d", n.ID, n.Size, n.Block))
	}
	if len(text) == 0 {
		return "no namespace"
	}
	return strings.Join(text, ", ")
}

// controller is the name of an NVMe's controller; "": its driver has made none.
func (h Host) controller(address string) (string, error) {
	dirs, err := os.ReadDir(h.Device(address, "nvme"))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(dirs) == 0 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return dirs[0].Name(), nil
}

// namespaceNames are the block devices of an NVMe, as far as its driver has made them.
func (h Host) namespaceNames(address string) ([]string, error) {
	c, err := h.controller(address)
	if err != nil || c == "" {
		return nil, err
	}
	dirs, err := os.ReadDir(h.Device(address, "nvme", c))
	var names []string
	for _, e := range dirs {
		if name, ok := namespaceName(e.Name()); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, err
}

// namespaceName is the block device that nvme0n1 is, or that the path nvme0c1n1 leads to.
func namespaceName(entry string) (string, bool) {
	digits := func(s string) (string, bool) {
		rest := strings.TrimLeft(s, "0123456789")
		return rest, len(rest) < len(s)
	}
	rest, ok := strings.CutPrefix(entry, "nvme")
	if !ok {
		return "", false
	}
	if rest, ok = digits(rest); !ok {
		return "", false
	}
	head := strings.TrimSuffix(entry, rest)
	if path, is := strings.CutPrefix(rest, "c"); is {
		if rest, ok = digits(path); !ok {
			return "", false
		}
	}
	number, ok := strings.CutPrefix(rest, "n")
	if left, some := digits(number); !ok || !some || left != "" {
		return "", false
	}
	return head + rest, true
}

// disk reads what an NVMe is that its driver has.
func (h Host) disk(address string) (seen, error) {
	c, err := h.controller(address)
	if err == nil && c == "" {
		err = errors.New("its driver has no controller of it")
	}
	if err != nil {
		return seen{}, err
	}
	path := filepath.Join(h.Dev, c)
	b, err := h.Identify(path, cnsController)
	if err != nil {
		return seen{}, fmt.Errorf("ask %s what it is: %w", path, err)
	}
	d := seen{names: map[int]string{}}
	manages := false
	d.Disk, manages, err = parseController(b)
	if err != nil {
		return seen{}, err
	}
	names, err := h.namespaceNames(address)
	if err != nil {
		return seen{}, err
	}
	for _, name := range names {
		var n Namespace
		sectors, err := pci.Number(h.blockFile(name, "size"))
		n.Size = int64(sectors) << 9
		if err == nil {
			n.Block, err = pci.Number(h.blockFile(name, "queue/logical_block_size"))
		}
		if err == nil {
			n.ID, err = pci.Number(h.blockFile(name, "nsid"))
		}
		if err != nil {
			return seen{}, err
		}
		d.Namespaces = append(d.Namespaces, n)
		d.names[n.ID] = name
	}
	slices.SortFunc(d.Namespaces, func(a, b Namespace) int { return a.ID - b.ID })
	if !manages {
		return d, nil
	}
	if b, err = h.Identify(path, cnsAllocated); err != nil {
		return seen{}, fmt.Errorf("ask %s for its namespaces: %w", path, err)
	}
	for _, id := range parseIDs(b) {
		if !slices.ContainsFunc(d.Namespaces, func(n Namespace) bool { return n.ID == id }) {
			return seen{}, &hiddenError{id}
		}
	}
	return d, nil
}

// hiddenError says that a namespace is not seen, so what is in it would stay.
type hiddenError struct{ id int }

func (e *hiddenError) Error() string {
	return fmt.Sprintf("its namespace %d is not attached: what is in it could not be erased; nvme attach-ns or nvme delete-ns", e.id)
}

// CNS of Identify (NVM Express Base Specification 2.0, 5.17.1).
const (
	cnsController = 0x01
	cnsAllocated  = 0x10
)

const (
	identifyOpcode = 0x06
	identifySize   = 4096
	identifyAtMost = 10 * time.Second
)

// parseController reads the data of a controller (5.17.2.1), and reports whether it manages namespaces: then there may
// be such as nobody sees.
func parseController(b []byte) (d Disk, manages bool, err error) {
	if len(b) < identifySize {
		return Disk{}, false, errors.New("the controller says too little of itself")
	}
	d = Disk{Serial: ascii(b[4:24]), Model: ascii(b[24:64]), Firmware: ascii(b[64:72])}
	if d.Serial == "" {
		return Disk{}, false, errors.New("the controller has no serial number, so nobody could know it again")
	}
	return d, binary.LittleEndian.Uint16(b[256:])&(1<<3) != 0, nil
}

// parseIDs reads a list of namespaces: it ends at the first 0.
func parseIDs(b []byte) []int {
	var ids []int
	for ; len(b) >= 4; b = b[4:] {
		id := binary.LittleEndian.Uint32(b)
		if id == 0 {
			break
		}
		ids = append(ids, int(id))
	}
	return ids
}

// ascii is a text of a controller. What is no text in it is written as Go would.
func ascii(b []byte) string {
	s := strings.Trim(string(b), " \x00")
	q := strconv.QuoteToASCII(s)
	return q[1 : len(q)-1]
}

// identify asks a controller by its own device.
func identify(path string, cns uint8) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	page := make([]byte, identifySize)
	read := nvme.Read{Opcode: identifyOpcode, DWord10: uint32(cns), Timeout: identifyAtMost}
	if err := read.Into(page, f.Fd()); err != nil {
		return nil, err
	}
	return page, nil
}
