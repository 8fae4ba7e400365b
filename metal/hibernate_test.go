package metal_test

import (
	"encoding/json"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// A machine that may hibernate keeps room on its disk; one that goes on is told where its memory is, and no image. What its
// first program hears makes sense to it. The site must allow it.
func TestGoesOnFromMemory(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 1)
	if f := r.regs[0].Facts; f != nil {
		with := *f
		with.Disks = []muster.Disk{{Name: "sda", Serial: "A", Size: 64 << 30}, {Name: "sdb", Serial: "B", Size: 8 << 30}}
		r.regs[0].Facts = &with
		r.machines["n0000"].reg.Facts = &with
	}
	p := r.open(t, func(o *metal.Options) { o.Hibernate = true })
	defer p.Close()
	if !p.Capabilities().Hibernates {
		t.Error("the site allows it")
	}
	area := wire.MemoryArea{Disk: wire.CleanDisk{Serial: "A", Size: 64 << 30, Keep: 16 << 30}}
	w := want(r, "n0000", 3)
	w.Boot.Memory = &area
	ensure(t, p, w)
	r.runs(t, "n0000")
	r.machines["n0000"].reset() // it hibernates, and is off: here, it has nothing to do
	eventually(t, p, "n0000", func(s provider.Observation) bool { return s.State == provider.StateStuck })
	on := area
	on.Key = make([]byte, wire.MemoryKeySize)
	w = want(r, "n0000", 4)
	w.Boot.Memory = &on
	ensure(t, p, w)
	ensure(t, p, w) // a server that was killed says it again
	if got := r.runs(t, "n0000"); got != 4 {
		t.Errorf("it runs attempt %d", got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.orders["n0000"]
	if len(list) != 2 {
		t.Fatalf("%d tasks", len(list))
	}
	kept := map[string]int64{}
	for _, d := range list[0].Scratch {
		kept[d.Serial] = d.Keep
	}
	if list[0].Memory != nil || kept["A"] != 16<<30 || kept["B"] != 0 || len(kept) != 2 {
		t.Errorf("%+v", list[0].Scratch)
	}
	o := list[1]
	if o.Memory == nil || o.Memory.Disk != area.Disk || len(o.Memory.Key) != wire.MemoryKeySize || o.Image != nil || o.Attempt != 4 || o.Bootstrap.Token != "the-token" {
		t.Errorf("%+v", o.Attempt)
	}
	b, err := json.Marshal(&wire.BootReply{Protocol: wire.BootProtocol, Task: o})
	if err == nil {
		_, err = wire.DecodeBootReply(b)
	}
	if err != nil {
		t.Errorf("its first program refuses the task: %v", err)
	}
}
