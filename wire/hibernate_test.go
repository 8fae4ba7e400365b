package wire_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// An order to hibernate that a machine could not obey is refused with every fault.
func TestHibernateOrder(t *testing.T) {
	t.Parallel()
	good := func() wire.HibernateOrder {
		return wire.HibernateOrder{ID: "2026", Memory: wire.MemoryArea{Disk: wire.CleanDisk{Serial: "a", Size: 8 << 30, Keep: 4 << 30}, Key: make([]byte, wire.MemoryKeySize)}}
	}
	o := good()
	if err := o.Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*wire.HibernateOrder){
		"id":                      func(o *wire.HibernateOrder) { o.ID = "" },
		"memory.key":              func(o *wire.HibernateOrder) { o.Memory.Key = o.Memory.Key[1:] },
		"memory.disk.keep_bytes":  func(o *wire.HibernateOrder) { o.Memory.Disk.Keep = 0 },
		"memory.disk[0]":          func(o *wire.HibernateOrder) { o.Memory.Disk.Serial = "" },
		"memory.disk[0].keep_byt": func(o *wire.HibernateOrder) { o.Memory.Disk.Keep++ },
	} {
		o := good()
		spoil(&o)
		if err := o.Check(); muster.CodeOf(err) != muster.EInvalid || !strings.Contains(muster.Describe(err)+err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A machine that goes on from its memory reads no image.
	task := wire.BootTask{Kind: wire.BootImage, Attempt: 2, Hostname: "n01", Bootstrap: &wire.Bootstrap{}, Memory: &o.Memory}
	if err := task.Check(); err != nil {
		t.Error(err)
	}
	task.Image = &wire.BootFiles{}
	if err := task.Check(); err == nil {
		t.Error("both an image and a memory")
	}
}
