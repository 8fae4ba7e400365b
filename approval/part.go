package approval

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/yamldoc"
	"go.yaml.in/yaml/v3"
)

// match reads what a machine must look like.
func (f *file) match(path string, n *yaml.Node) (m Match) {
	before := len(f.Problems)
	f.Fields(n, path+".", []string{"mac", "serials", "serial-list", "maker", "product", "switch", "port", "tpm"}, func(name string, v *yaml.Node) {
		field := path + "." + name
		if name == "serials" {
			m.Serials = append(m.Serials, f.list(field, v)...)
			return
		}
		value := f.Text(field, v)
		if value == "" {
			f.Bad(field, yamldoc.At(v), "leave the field out, or write what it must be", "it is empty")
			return
		}
		switch name {
		case "mac":
			m.MAC = strings.ReplaceAll(value, "-", ":")
			if strings.Trim(strings.ToLower(m.MAC), "0123456789abcdef:*?") != "" {
				f.Bad(field, yamldoc.At(v), "write it as 52:54:00:*", "%q matches no address of an interface", yamldoc.Clip(value))
			}
		case "serial-list":
			m.Serials = append(m.Serials, f.serials(field, yamldoc.At(v), value)...)
		case "maker":
			m.Maker = value
		case "product":
			m.Product = value
		case "switch":
			m.Switch = value
		case "port":
			m.Port = value
		case "tpm":
			m.TPM = true
			if value != "required" {
				f.Bad(field, yamldoc.At(v), "write required, or leave it out", "%q is not what can be asked of a TPM", yamldoc.Clip(value))
			}
		}
	})
	if len(m.Serials) > maxSerials {
		f.Bad(path+".serials", yamldoc.At(n), "use several rules", "%d serial numbers are too many", len(m.Serials))
	}
	if len(f.Problems) == before && reflect.DeepEqual(m, Match{}) {
		f.Bad(path, yamldoc.At(n), `to match every machine, write mac: "*"`, "a rule must say which machines it is for")
	}
	return m
}

// list is a list of texts, or one.
func (f *file) list(path string, n *yaml.Node) (out []string) {
	if n.Kind != yaml.SequenceNode {
		n = &yaml.Node{Kind: yaml.SequenceNode, Line: n.Line, Content: []*yaml.Node{n}}
	}
	for _, v := range n.Content {
		if s := f.Text(path, v); s != "" {
			out = append(out, s)
		} else {
			f.Bad(path, yamldoc.At(v), "write serial numbers as the machines have them", "a serial number is empty")
		}
	}
	if len(n.Content) == 0 {
		f.Bad(path, yamldoc.At(n), "write serial numbers as the machines have them", "there is none in it")
	}
	return out
}

// serials reads a file of serial numbers, one on a line; # begins a remark.
func (f *file) serials(field, place, path string) (out []string) {
	for line := range strings.Lines(string(f.contents(field, place, path))) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	if len(out) == 0 {
		f.Bad(field, place, "write one on a line", "there is no serial number in %s", yamldoc.Clip(path))
	}
	return out
}

func (f *file) contents(field, place, path string) []byte {
	if f.read == nil {
		return nil
	}
	b, err := f.read(path)
	if err != nil {
		f.Bad(field, place, "see whether the server may read it", "%s cannot be read", yamldoc.Clip(path))
	}
	return b
}

// then reads what becomes of a machine.
func (f *file) then(path string, n *yaml.Node) (t Then) {
	known := []string{"state", "name", "class", "rack", "position", "power", "power-password-file", "least-trust", "service"}
	places := map[string]string{}
	f.Fields(n, path+".", known, func(name string, v *yaml.Node) {
		value, field := f.Text(path+"."+name, v), path+"."+name
		places[name] = yamldoc.At(v)
		switch name {
		case "state":
			t.State = muster.RegistrationState(value)
		case "name":
			t.Name = value
		case "class":
			t.Class = value
		case "rack":
			t.Rack = value
		case "position":
			t.Position = value
		case "power":
			t.Power = value
		case "power-password-file":
			line, _, _ := strings.Cut(string(f.contents(field, yamldoc.At(v), value)), "\n")
			t.Password = Secret(strings.TrimSuffix(line, "\r"))
			if t.Password == "" {
				f.Bad(field, yamldoc.At(v), "write it as the first line of the file", "there is no password in it")
			}
		case "least-trust":
			t.LeastTrust = muster.Trust(value)
		case "service":
			t.Service = value == "yes" || value == "true"
			if !t.Service && value != "no" && value != "false" {
				f.Bad(field, yamldoc.At(v), "write yes or no", "%q is neither yes nor no", yamldoc.Clip(value))
			}
		}
	})
	place := func(name string) string {
		if p, ok := places[name]; ok {
			return p
		}
		return yamldoc.At(n)
	}
	states := []string{string(muster.RegistrationApproved), string(muster.RegistrationForbidden)}
	if !slices.Contains(states, string(t.State)) {
		f.Bad(path+".state", place("state"), yamldoc.Meant(string(t.State), states), "%q is nothing that becomes of a machine", yamldoc.Clip(string(t.State)))
	}
	f.trial(path, t, place)
	return t
}

// trial fills the texts in for a machine that has everything, so that what can never
// be right is told when the file is read.
func (f *file) trial(path string, t Then, place func(string) string) {
	before := len(f.Problems)
	ahead := Places()
	for _, x := range t.texts() {
		may := ahead
		if i := slices.Index(ahead, x.field); i >= 0 {
			may = ahead[:i]
		}
		pieces, wrong := split(x.value)
		if wrong != "" {
			f.Bad(path+"."+x.field, place(x.field), "write places as {serial} or {position:2}", "%s", wrong)
		}
		for _, p := range pieces {
			switch {
			case !p.place || slices.Contains(may, p.text):
			case slices.Contains(ahead, p.text):
				f.Bad(path+"."+x.field, place(x.field), "it may use: "+strings.Join(may, ", "), "{%s} is not known yet", p.text)
			default:
				f.Bad(path+"."+x.field, place(x.field), yamldoc.Meant(p.text, may), "there is no {%s}", yamldoc.Clip(p.text))
			}
		}
	}
	if len(f.Problems) > before {
		return
	}
	l := looks{mac: "52:54:00:00:00:01", serial: "1", maker: "1", product: "1", at: "1", port: "1"}
	d, err := t.of(l)
	if err != nil {
		hint := ""
		if e := (*muster.Error)(nil); errors.As(err, &e) {
			hint = e.Hint
		}
		f.Bad(path, place("power"), hint, "%s", err)
		return
	}
	r := muster.Registration{
		ID: d.Name, Class: d.Class, Rack: d.Rack, Position: d.Position, Power: d.Power, LeastTrust: d.LeastTrust,
		NICs: []muster.RegisteredNIC{{MAC: l.mac, Use: muster.UseManagement}},
	}
	if r.ID == "" {
		r.ID = "m-525400000001"
	}
	for _, p := range r.Check() {
		field, _, _ := strings.Cut(p.Field, ".")
		f.Bad(path+"."+p.Field, place(field), p.Hint, "%s", p.Message)
	}
	controller := d.Power.Kind == muster.PowerIPMI || d.Power.Kind == muster.PowerRedfish
	if controller && t.Password == "" && t.State == muster.RegistrationApproved {
		f.Bad(path+".power-password-file", place("power"), "name the file with it: power-password-file", "the password of the controllers is missing")
	}
}
