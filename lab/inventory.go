package lab

import (
	"encoding/csv"
	"io"
	"path/filepath"
	"strconv"
)

// Inventory is what an administrator tells Muster of a rack, in the form that
// 'muster machine import' reads (package inventory).
type Inventory struct {
	Machines []Item `json:"machines"`
}

// Item is one machine.
type Item struct {
	Name     string    `json:"name"`
	Class    string    `json:"class"`
	Rack     string    `json:"rack"`
	Position string    `json:"position"`
	Serial   string    `json:"serial"`
	UUID     string    `json:"uuid"`
	Power    ItemPower `json:"power"`
	NICs     []ItemNIC `json:"nics"`
}

// ItemPower is what switches a machine.
type ItemPower struct {
	Kind         string `json:"kind"` // wol, ipmi
	Address      string `json:"address,omitempty"`
	User         string `json:"user,omitempty"`
	PasswordFile string `json:"password_file,omitempty"`
}

// ItemNIC is one card and where its cable leads.
type ItemNIC struct {
	Use    string `json:"use"`
	MAC    string `json:"mac"`
	Switch string `json:"switch"`
	Port   string `json:"port"`
}

// Inventory lists the lab's machines.
func (l *Lab) Inventory() (Inventory, error) {
	c, err := l.Config()
	if err != nil {
		return Inventory{}, err
	}
	out := Inventory{}
	for _, m := range l.plan(c) {
		i := Item{Name: m.Name, Class: m.Class, Rack: m.Rack, Position: strconv.Itoa(m.Position), Serial: m.Serial, UUID: m.UUID, Power: ItemPower{Kind: "wol"}}
		if m.BMC.IsValid() {
			i.Power = ItemPower{Kind: "ipmi", Address: m.BMC.String(), User: Account, PasswordFile: filepath.Join(l.dir, passwordFile)}
		}
		for _, n := range m.NICs {
			i.NICs = append(i.NICs, ItemNIC{Use: n.Use, MAC: n.MAC, Switch: l.switchName(), Port: n.Port})
		}
		out.Machines = append(out.Machines, i)
	}
	return out, nil
}

// switchName is what the lab's switch is called: how it is driven, and where it is.
func (l *Lab) switchName() string { return "ovs:" + l.switchDir() }

// WriteCSV writes one line for each machine.
func (i Inventory) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"name", "mac", "message_mac", "power", "power_user", "power_password_file", "rack", "position", "class", "serial", "uuid",
		"switch", "port", "message_switch", "message_port"}); err != nil {
		return err
	}
	for _, m := range i.Machines {
		power := m.Power.Kind
		if m.Power.Address != "" {
			power += "://" + m.Power.Address
		}
		a, b := m.NICs[0], m.NICs[1]
		if err := out.Write([]string{m.Name, a.MAC, b.MAC, power, m.Power.User, m.Power.PasswordFile, m.Rack, m.Position, m.Class, m.Serial, m.UUID,
			a.Switch, a.Port, b.Switch, b.Port}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
