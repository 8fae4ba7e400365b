package inventory

import (
	"fmt"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/yamldoc"
	"go.yaml.in/yaml/v3"
)

// yaml reads "machines:" and a list of them, or the list alone.
func (f *file) yaml(data []byte) {
	list := f.Parse(data, "see muster machine import --help for an example", "put all machines into one list")
	if list != nil && list.Kind == yaml.MappingNode {
		top := list
		list = nil
		f.Fields(top, "", []string{"machines"}, func(_ string, v *yaml.Node) { list = v })
	}
	if list == nil {
		return
	}
	if list.Kind != yaml.SequenceNode {
		f.Wrong(muster.ReasonWrongType, "machines", yamldoc.At(list), "begin each machine with a dash", "a list of machines is expected")
		return
	}
	for i, n := range list.Content {
		if i > maxMachines {
			f.Wrong(muster.ReasonTooMany, "machines", "", fmt.Sprintf("at most %d in a file", maxMachines), "there are too many machines")
			return
		}
		f.machine(fmt.Sprintf("machines[%d]", i), n)
	}
}

func (f *file) machine(path string, n *yaml.Node) {
	e := Entry{Place: yamldoc.At(n)}
	m := &e.Machine
	known := []string{"name", "mac", "nics", "power", "rack", "position", "chassis", "class", "service", "serial", "uuid", "min_trust"}
	f.Fields(n, path+".", known, func(name string, v *yaml.Node) {
		field := path + "." + name
		e.stands(name, yamldoc.At(v))
		switch name {
		case "nics":
			f.nics(&e, field, v)
		case "power":
			f.power(&e, field, v)
		case "name":
			m.ID = muster.MachineID(f.text(&e, name, field, v))
		case "mac":
			interfaceOf(m, muster.UseManagement).MAC = f.text(&e, "nics", field, v)
		case "rack":
			m.Rack = f.text(&e, name, field, v)
		case "position":
			m.Position = f.text(&e, name, field, v)
		case "chassis":
			m.Chassis = f.text(&e, name, field, v)
		case "class":
			m.Class = f.text(&e, name, field, v)
		case "service":
			m.Service = f.truth(field, yamldoc.At(v), f.text(&e, name, field, v))
		case "serial":
			m.Serial = f.text(&e, name, field, v)
		case "uuid":
			m.UUID = f.text(&e, name, field, v)
		case "min_trust":
			m.MinTrust = muster.Trust(strings.ToLower(f.text(&e, name, field, v)))
		}
	})
	if n.Kind == yaml.MappingNode { // else that was told, and no more can be said
		f.entries = append(f.entries, e)
	}
}

// text is that of a field, which is below the machine's path. Of one that is no text it is
// told here, and not again that it is missing.
func (f *file) text(e *Entry, field, path string, v *yaml.Node) string {
	e.stands(field, yamldoc.At(v))
	if v.Kind != yaml.ScalarNode {
		e.told = append(e.told, field)
	}
	return f.Text(path, v)
}

func (f *file) nics(e *Entry, path string, n *yaml.Node) {
	m := &e.Machine
	if n.Kind != yaml.SequenceNode {
		e.told = append(e.told, "nics")
		f.Wrong(muster.ReasonWrongType, path, yamldoc.At(n), "begin each interface with a dash", "a list of interfaces is expected")
		return
	}
	for i, item := range n.Content {
		var nic muster.RegisteredNIC
		p := fmt.Sprintf("%s[%d].", path, i)
		if item.Kind != yaml.MappingNode {
			e.told = append(e.told, fmt.Sprintf("nics[%d]", i))
		}
		f.Fields(item, p, []string{"mac", "use", "switch", "port"}, func(name string, v *yaml.Node) {
			value := f.text(e, fmt.Sprintf("nics[%d].%s", len(m.NICs), name), p+name, v)
			switch name {
			case "mac":
				nic.MAC = value
			case "use":
				nic.Use = value
			case "switch":
				nic.Switch = value
			case "port":
				nic.Port = value
			}
		})
		m.NICs = append(m.NICs, nic)
	}
}

// power is one word, or fields.
func (f *file) power(e *Entry, path string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		f.switched(e, path, yamldoc.At(n), f.Text(path, n))
		return
	}
	if n.Kind != yaml.MappingNode {
		e.told = append(e.told, "power")
	}
	p := &e.Machine.Power
	known := []string{
		"kind", "address", "user", "password", "password_file", "key", "key_file", "system", "quirk", "certificate_sha256", "authority", "authority_file",
		"boot_mode", "boot", "interface", "proves",
	}
	f.Fields(n, path+".", known, func(name string, v *yaml.Node) {
		value := f.text(e, "power."+name, path+"."+name, v)
		switch name {
		case "kind":
			p.Kind = muster.PowerKind(value)
		case "address":
			p.Address = value
		case "user":
			p.User = value
		case "password":
			e.Password = Secret(value)
		case "password_file":
			e.PasswordFile = value
		case "key":
			e.PowerKey = Secret(value)
		case "key_file":
			e.PowerKeyFile = value
		case "system":
			p.System = strings.TrimSuffix(value, "/") // as some controllers show it
		case "quirk":
			p.Quirk = value
		case "certificate_sha256":
			p.CertificateSHA256 = muster.CanonicalSHA256(value)
		case "authority":
			p.Authority = value
		case "authority_file":
			e.AuthorityFile = value
		case "boot_mode":
			p.BootMode = muster.BootMode(strings.ToLower(value))
		case "boot":
			p.Boot = muster.BootProtocol(strings.ToLower(value))
		case "interface":
			p.Interface = value
		case "proves":
			p.Proves = f.truth(path+"."+name, yamldoc.At(v), value)
		}
	})
}
