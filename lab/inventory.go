package lab

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// Inventory is what an administrator tells Muster of a rack: the form is that of
// 'muster machine import'.
type Inventory struct {
	Machines []Item `json:"machines"`
}

// Item is one machine.
type Item struct {
	Name     string    `json:"name"`
	Class    string    `json:"class"`
	Rack     string    `json:"rack"`
	Position int       `json:"position"`
	Serial   string    `json:"serial"`
	UUID     string    `json:"uuid"`
	Power    string    `json:"power"` // address of what switches it: wol: or a controller's
	NICs     []ItemNIC `json:"nics"`
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
		i := Item{Name: m.Name, Class: m.Class, Rack: m.Rack, Position: m.Position, Serial: m.Serial, UUID: m.UUID, Power: "wol:" + m.NICs[0].MAC}
		if m.BMC.IsValid() {
			i.Power = fmt.Sprintf("ipmi://%s", m.BMC)
		}
		for _, n := range m.NICs {
			i.NICs = append(i.NICs, ItemNIC{Use: n.Use, MAC: n.MAC, Switch: "ovs:" + l.switchDir(), Port: n.Port})
		}
		out.Machines = append(out.Machines, i)
	}
	return out, nil
}

// WriteCSV writes one line for each machine, with both cards in it.
func (i Inventory) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"name", "class", "rack", "position", "serial", "uuid", "power",
		"management-mac", "management-switch", "management-port", "message-mac", "message-switch", "message-port"}); err != nil {
		return err
	}
	for _, m := range i.Machines {
		row := []string{m.Name, m.Class, m.Rack, strconv.Itoa(m.Position), m.Serial, m.UUID, m.Power}
		for _, n := range m.NICs {
			row = append(row, n.MAC, n.Switch, n.Port)
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
