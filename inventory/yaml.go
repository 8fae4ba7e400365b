package inventory

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"go.yaml.in/yaml/v3"
)

// yaml reads "machines:" and a list of them, or the list alone.
func (f *file) yaml(data []byte) {
	// The parser is other people's code fed with outside bytes.
	defer func() {
		if recover() != nil {
			f.bad("file", "", "see muster machine import --help for an example", "it is not valid YAML")
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := d.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			f.bad("file", "", "see muster machine import --help for an example", "it is not valid YAML: %s", clip(strings.TrimPrefix(err.Error(), "yaml: ")))
		}
		return
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		f.bad("file", "", "put all machines into one list", "there is more than one document in it")
		return
	}
	list := doc.Content[0]
	if list.Kind == yaml.MappingNode {
		list = nil
		f.fields(doc.Content[0], "", []string{"machines"}, func(_ string, v *yaml.Node) { list = v })
		if list == nil {
			return
		}
	}
	if list.Kind != yaml.SequenceNode {
		f.bad("machines", at(list), "begin each machine with a dash", "a list of machines is expected")
		return
	}
	for i, n := range list.Content {
		if i > maxMachines {
			f.bad("machines", "", fmt.Sprintf("at most %d in a file", maxMachines), "there are too many machines")
			return
		}
		f.machine(fmt.Sprintf("machines[%d]", i), n)
	}
}

func at(n *yaml.Node) string { return fmt.Sprintf("line %d", n.Line) }

// fields calls each for the fields of a map.
func (f *file) fields(n *yaml.Node, path string, known []string, each func(name string, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		f.bad(strings.TrimSuffix(path, "."), at(n), "fields are: "+strings.Join(known, ", "), "fields are expected")
		return
	}
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, v := n.Content[i].Value, n.Content[i+1]
		switch {
		case !slices.Contains(known, name):
			f.unknown(path+name, at(n.Content[i]), known)
		case slices.Contains(seen, name):
			f.bad(path+name, at(n.Content[i]), "keep one", "the field is given twice")
		default:
			each(name, v)
		}
		seen = append(seen, name)
	}
}

// text is a scalar's. Aliases and the like are no texts.
func (f *file) text(path string, n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		f.bad(path, at(n), "write one value", "a text is expected")
		return ""
	}
	if n.Tag == "!!null" {
		return ""
	}
	return strings.TrimSpace(n.Value)
}

func (f *file) machine(path string, n *yaml.Node) {
	e := Entry{Place: at(n)}
	m := &e.Machine
	known := []string{"name", "mac", "nics", "power", "rack", "position", "chassis", "class", "service", "serial", "uuid", "least-trust"}
	f.fields(n, path+".", known, func(name string, v *yaml.Node) {
		field := path + "." + name
		switch name {
		case "nics":
			f.nics(m, field, v)
		case "power":
			f.power(&e, field, v)
		case "name":
			m.ID = muster.MachineID(f.text(field, v))
		case "mac":
			interfaceOf(m, muster.UseManagement).MAC = f.text(field, v)
		case "rack":
			m.Rack = f.text(field, v)
		case "position":
			m.Position = f.text(field, v)
		case "chassis":
			m.Chassis = f.text(field, v)
		case "class":
			m.Class = f.text(field, v)
		case "service":
			m.Service = f.truth(field, at(v), f.text(field, v))
		case "serial":
			m.Serial = f.text(field, v)
		case "uuid":
			m.UUID = f.text(field, v)
		case "least-trust":
			m.LeastTrust = muster.Trust(f.text(field, v))
		}
	})
	f.entries = append(f.entries, e)
}

func (f *file) nics(m *muster.Registration, path string, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		f.bad(path, at(n), "begin each interface with a dash", "a list of interfaces is expected")
		return
	}
	for i, item := range n.Content {
		var nic muster.RegisteredNIC
		p := fmt.Sprintf("%s[%d].", path, i)
		f.fields(item, p, []string{"mac", "use", "switch", "port"}, func(name string, v *yaml.Node) {
			value := f.text(p+name, v)
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
		f.switched(e, path, at(n), f.text(path, n))
		return
	}
	p := &e.Machine.Power
	known := []string{"kind", "address", "user", "password", "password-file", "quirk", "certificate-sha256"}
	f.fields(n, path+".", known, func(name string, v *yaml.Node) {
		value := f.text(path+"."+name, v)
		switch name {
		case "kind":
			p.Kind = muster.PowerKind(value)
		case "address":
			p.Address = value
		case "user":
			p.User = value
		case "password":
			e.Password = Secret(value)
		case "password-file":
			e.PasswordFile = value
		case "quirk":
			p.Quirk = value
		case "certificate-sha256":
			p.CertificateSHA256 = strings.ToLower(value)
		}
	})
}
