package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// pretendedBoots are boots that a test makes up.
type pretendedBoots map[muster.MachineID]wire.MachineBoot

func (p pretendedBoots) BootOf(id muster.MachineID) (wire.MachineBoot, bool) {
	b, ok := p[id]
	return b, ok
}

func (p pretendedBoots) Queue(rack string) (out []wire.QueuedBoot) {
	for _, b := range p {
		if b.Queue != nil && (rack == "" || b.Rack == rack) {
			out = append(out, wire.QueuedBoot{Machine: b.Machine, Rack: b.Rack, Kind: b.Kind, Ordered: b.Ordered, BootPlace: *b.Queue})
		}
	}
	return out
}

// An administrator sees what bare machines are, how they are believed, and how far their
// boots are; others see no more than they may.
func TestMachineBoots(t *testing.T) {
	t.Parallel()
	now := time.Now()
	boots := pretendedBoots{
		"r1-n01": {
			Machine: "r1-n01", Kind: wire.BootImage, Step: "running", Since: now.Add(-9 * time.Second), Trust: muster.TrustTPM, Address: "10.0.0.11", Doing: "image",
			Stages: []wire.BootStage{{Name: "kernel", After: muster.Duration(1500 * time.Millisecond)}, {Name: "address", After: muster.Duration(2500 * time.Millisecond)}},
		},
		"r1-n02": {Machine: "r1-n02", Rack: "r1", Kind: wire.BootDiscover, Step: "queued", Ordered: now.Add(-time.Minute), Since: now.Add(-time.Minute), Queue: &wire.BootPlace{Place: 3, ETA: now.Add(2*time.Minute + time.Second)}},
		"r2-n01": {
			Machine: "r2-n01", Kind: wire.BootClean, Step: "failed", Since: now.Add(-time.Minute),
			Failure: &wire.BootFailure{Stage: "power", Code: "silent", Text: "nothing was heard of it\x1b[2J", Hint: "look at its console"},
		},
	}
	s := controltest.Start(t, controltest.Options{Machines: 1, Control: func(c *control.Config) { c.Boots = boots }})
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		for i, id := range []muster.MachineID{"r1-n01", "r1-n02", "r2-n01"} {
			mac := "52:54:00:aa:00:0" + string(rune('1'+i))
			f := muster.Facts{
				Vendor: "Dell Inc.", Product: "R6525", Cores: 64, Memory: 512 << 30, Rack: string(id[:2]),
				DIMMs: []muster.DIMM{{Slot: "A1", Size: 64 << 30, Kind: "DDR5", Speed: 4800, Part: "P1"}},
				Disks: []muster.Disk{{Name: "nvme0n1", Kind: "nvme", Model: "PM9A3", Serial: "D1", Size: 960e9}},
				NICs:  []muster.NIC{{Name: "eth0", MAC: mac, Speed: 25e9, Link: "up", Driver: "mlx5_core", Neighbour: &muster.Neighbour{System: "sw1", Port: "Ethernet7"}}},
			}
			r := muster.Registration{
				ID: id, State: muster.RegistrationApproved, Rack: string(id[:2]), Position: "7", By: "root", Facts: &f, Seen: now.Add(-time.Hour), Trust: muster.TrustPort,
				Power: muster.PowerAddress{Kind: muster.PowerIPMI, Address: "10.0.0.11", User: "admin"}, ObservedEK: []byte("k"),
				NICs: []muster.RegisteredNIC{{MAC: mac, Use: muster.UseManagement, Switch: "sw1", Port: "7"}},
			}
			if err := tx.PutRegistration(r, "registered"); err != nil {
				return err
			}
			if err := tx.PutPowerSecret(id, []byte("sesame")); err != nil {
				return err
			}
			if id == "r2-n01" {
				continue // it is not taken in yet
			}
			if err := tx.PutMachine(muster.Machine{ID: id, Provider: "metal", Phase: muster.MachineNew, Facts: f, LastSeen: now}, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w := at(t, s)
	w.run("machine", "boot-queue").want(t, 0, "r1-n01 +r1 +boot +running +[0-9]+s +tpm +image", "r2-n01 +r2 +clean +failed +1m.* +power: nothing was heard of it�\\[2J", "r1-n02 +r1 +discover +queued +1m.* +place 3, in about (2m|1m[45].s)")
	if r := w.run("machine", "boot-queue", "--rack", "r2"); strings.Contains(r.out, "r1-n0") || !strings.Contains(r.out, "r2-n01") {
		t.Errorf("of rack r2:\n%s", r.out)
	}
	w.run("machine", "boot-queue", "-o", "json").want(t, 0, `"after_seconds": 2.5`, `"place": 3`)
	w.run("machine", "show", "r1-n01").want(t, 0, "registered +approved, by root", "boots from +management 52:54:00:aa:00:01 at sw1 port 7", "power +ipmi://admin@10.0.0.11",
		"booted +1h.* ago, trusted as port", "TPM +.*: muster machine approve r1-n01", "made by +Dell Inc. R6525", "A1 +64.*DDR5 +4800", "nvme0n1 .*PM9A3 +D1",
		"eth0 +52:54:00:aa:00:01 +25Gb/s +up +mlx5_core .*sw1 +Ethernet7", "boot: .* [0-9]+s, .*tpm", "2.5s +address +\\+1.0s", "image \\.\\.\\.")
	w.run("machine", "show", "r1-n02").want(t, 0, "boot: .*queued.* 3 .*r1.* (2m|1m[45].s)")
	w.run("machine", "show", "r2-n01").want(t, 0, "failed in power \\(silent\\)")
	w.run("machine", "list", "--all").want(t, 0, "r1-n02 +new, place 3 to discover")
	w.run("machine", "list", "--registered").want(t, 0, "r1-n01 .* port")
	if all := w.run("machine", "show", "r1-n01", "-o", "json").out + w.run("machine", "list", "--registered", "-o", "json").out; strings.Contains(all, "sesame") || !strings.Contains(all, `"trust": "port"`) {
		t.Errorf("%s", all)
	}
	w.run("machine", "discover", "r1-n02", "r2-n01", "--wait", "--timeout", "50ms").want(t, 8, "r1-n02 +asked +queued, place 3 in rack r1", "r2-n01 +asked +power: nothing was heard", "not discovered")
	// What it said first is not all: it listens still.
	boots["r1-n02"] = wire.MachineBoot{Machine: "r1-n02", Kind: wire.BootDiscover, Step: "running", Since: now}
	if err := s.Control.RecordFacts(t.Context(), "r1-n02", muster.Facts{Cores: 64}, muster.TrustPort, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.run("machine", "discover", "r1-n02", "--wait", "--timeout", "50ms").want(t, 8, "r1-n02 +asked +.*running")
	boots["r1-n02"] = wire.MachineBoot{Machine: "r1-n02", Kind: wire.BootDiscover, Step: "done", Since: now}
	w.run("machine", "discover", "r1-n02", "--wait", "--timeout", "1m").want(t, 0, "r1-n02 +discovered +disk: the disk PM9A3 .* is gone; nic: .* \\(muster machine approve r1-n02 accepts it\\)")
	// Who is no administrator sees the machine, and nothing of how it is switched.
	alice := muster.Actor{Name: "alice", Projects: []string{"p"}}
	m, err := s.Control.Machine(t.Context(), alice, "r1-n01")
	if err != nil || m.Registration != nil || m.Boot != nil {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := s.Control.Machine(t.Context(), alice, "r2-n01"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("%v", err)
	}
	if list, err := s.Control.MachineBoots(t.Context(), alice, wire.BootQuery{}); err != nil || len(list.Boots)+len(list.Queue) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// Without bare machines there is nothing to list.
func TestNoMachineBoots(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	w := at(t, s)
	w.run("machine", "boot-queue").want(t, 0, "No bare machine")
	w.run("machine", "boot-queue", "-o", "json").want(t, 0, `"boots": \[\]`, `"queue": \[\]`)
	if r := w.run("machine", "show", "fake-01"); strings.Contains(r.out, "registered") || strings.Contains(r.out, "boot:") {
		t.Errorf("%s", r.out)
	}
}
