package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/vm/function"
)

// function reads back the virtual function that is the message card.
func (r *vmReading) function(h function.Host, t *function.Taken) {
	at := "/sys/bus/pci/devices/" + t.Address
	driver, err := h.DriverOf(t.Address)
	found := t.Address + ", driver " + driver
	if err != nil {
		found = err.Error()
	}
	r.add("nic", t.Address+", a virtual function of "+t.Card, found, at+"/driver", err == nil && driver == function.Driver, again)
	_, group, err := h.Group(t.Address)
	found = strings.Join(group, " ")
	if err != nil {
		found = err.Error()
	}
	r.add("nic-group", t.Address, found, at+"/iommu_group/devices", err == nil && found == t.Address, "plug the card into a slot of another root port, or enable ACS in firmware setup")
	want, err := t.Guard()
	got, also := h.GuardOf(t.Function)
	found = got.String()
	for _, e := range []error{err, also} {
		if e != nil {
			found = e.Error()
		}
	}
	r.add("nic-guard", want.String(), found, "ip -json link show dev "+t.Card, err == nil && also == nil && found == want.String(), "leave the functions of the card to it: another program of the host has set this one")
}

// locked looks whether the kernel keeps all of its memory where it is, and how much QEMU may have so.
func (r *vmReading) locked() {
	text, err := taskStatus(r.pid, r.pid, "VmLck")
	if err != nil {
		text = err.Error()
	}
	n, also := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	limit := lockLimit(r.dir)
	r.add("memlock", "QEMU may lock "+plaintext.Bytes(r.plan.Memlock), "VmLck "+text+", limit "+limit, "/proc/{pid}/status, /proc/{pid}/limits",
		err == nil && also == nil && n >= r.plan.Memory>>10 && limit == strconv.FormatInt(r.plan.Memlock, 10), again)
}

// lockLimit is how many bytes a process may lock, as the kernel says it.
func lockLimit(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "limits"))
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Max locked memory"); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				return f[0]
			}
		}
	}
	return "not known"
}
