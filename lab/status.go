package lab

import (
	"context"
	"net/netip"
	"time"

	"github.com/muster-hpc/muster/lab/machine"
	"github.com/muster-hpc/muster/lab/vswitch"
)

// Status is how a lab is. Its JSON is what 'muster lab status -o json' prints: fields
// are only added.
type Status struct {
	Dir       string           `json:"dir"`
	Namespace string           `json:"namespace"`
	Interface string           `json:"interface"` // the server's, in Namespace or, with an uplink, outside
	Uplink    bool             `json:"uplink"`
	Server    netip.Prefix     `json:"server"` // its address
	Firmware  string           `json:"firmware"`
	KVM       bool             `json:"kvm"`
	Switch    string           `json:"switch"` // running, down
	Machines  []machine.Status `json:"machines"`
}

// patience is how long a machine may take to say how it is.
const patience = 5 * time.Second

// Status looks at the lab. Returns ENotFound when there is none.
func (l *Lab) Status(ctx context.Context) (Status, error) {
	c, err := l.Config()
	if err != nil {
		return Status{}, err
	}
	s := Status{Dir: l.dir, Namespace: l.Namespace(), Interface: Inside, Server: c.Server(), Firmware: "BIOS", KVM: c.KVM, Switch: "down"}
	if c.Uplink != "" {
		s.Interface, s.Uplink = c.Uplink, true
	}
	if c.UEFI {
		s.Firmware = "UEFI"
	}
	if vswitch.Running(l.switchDir()) {
		s.Switch = "running"
	}
	for _, m := range l.plan(c) {
		s.Machines = append(s.Machines, l.look(ctx, m))
	}
	return s, nil
}

// look asks one machine, or says what it would be.
func (l *Lab) look(ctx context.Context, m machine.Config) machine.Status {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dir := l.machineDir(m.Name)
	s, err := machine.Ask(ctx, dir, machine.Request{Do: machine.DoStatus})
	if err == nil {
		return s
	}
	return machine.Status{Machine: m.Name, State: machine.Gone, Class: m.Class, Cores: m.Cores, Memory: m.Memory, Rack: m.Rack, Position: m.Position,
		NICs: m.NICs, Console: machine.ConsoleLog(dir), Problem: err.Error()}
}
