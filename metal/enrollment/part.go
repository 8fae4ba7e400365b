package enrollment

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/yamldoc"
	"go.yaml.in/yaml/v3"
)

// match reads what a machine must look like.
func (f *file) match(path string, n *yaml.Node) (m Match) {
	before := len(f.Problems)
	f.Fields(n, path+".", []string{"mac", "serials", "serial-list", "vendor", "product", "switch", "port", "tpm"}, func(name string, v *yaml.Node) {
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
		case "vendor":
			m.Vendor = value
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
		f.Wrong(muster.ReasonTooMany, path+".serials", yamldoc.At(n), "use several rules", "%d serial numbers are too many", len(m.Serials))
	}
	if len(f.Problems) == before && reflect.DeepEqual(m, Match{}) {
		f.Wrong(muster.ReasonRequired, path, yamldoc.At(n), `to match every machine, write mac: "*"`, "a rule must say which machines it is for")
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
		f.Wrong(muster.ReasonRequired, path, yamldoc.At(n), "write serial numbers as the machines have them", "there is none in it")
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
		f.Wrong(muster.ReasonRequired, field, place, "write one on a line", "there is no serial number in %s", yamldoc.Clip(path))
	}
	return out
}

func (f *file) contents(field, place, path string) []byte {
	if f.read == nil {
		return nil
	}
	b, err := f.read(path)
	if err != nil {
		f.Wrong(muster.ReasonFileUnreadable, field, place, "see whether the server may read it", "%s cannot be read", yamldoc.Clip(path))
	}
	return b
}

func (f *file) truth(field, place, value string) bool {
	yes := value == "yes" || value == "true"
	if !yes && value != "no" && value != "false" {
		f.Bad(field, place, "write yes or no", "%q is neither yes nor no", yamldoc.Clip(value))
	}
	return yes
}

// secret is the first line of a file.
func (f *file) secret(field, place, path, what string) Secret {
	line, _, _ := strings.Cut(string(f.contents(field, place, path)), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		f.Wrong(muster.ReasonRequired, field, place, "write it as the first line of the file", "it contains no %s", what)
	}
	return Secret(line)
}

// then reads what becomes of a machine.
func (f *file) then(path string, n *yaml.Node) (t Then) {
	known := []string{"state", "name", "class", "rack", "position", "power", "power_password_file", "power_key_file", "power_quirk", "power_authority_file", "power_boot_mode",
		"power_boot", "power_interface", "power_proves", "min_trust", "service"}
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
		case "power_password_file":
			t.Password = f.secret(field, yamldoc.At(v), value, "password")
		case "power_key_file":
			t.PowerKey = f.secret(field, yamldoc.At(v), value, "key")
		case "power_quirk":
			t.Switched.Quirk = value
		case "power_authority_file":
			t.Switched.Authority = strings.TrimSpace(string(f.contents(field, yamldoc.At(v), value)))
			if t.Switched.Authority == "" {
				f.Wrong(muster.ReasonRequired, field, yamldoc.At(v), "name a PEM file with the certificate of a CA", "it contains no certificate")
			}
		case "power_boot_mode":
			t.Switched.BootMode = muster.BootMode(value)
		case "power_boot":
			t.Switched.Boot = muster.BootProtocol(value)
		case "min_trust":
			t.MinTrust = muster.Trust(value)
		case "power_interface":
			t.Switched.Interface = value
		case "power_proves":
			t.Switched.Proves = f.truth(field, yamldoc.At(v), value)
		case "service":
			t.Service = f.truth(field, yamldoc.At(v), value)
		}
	})
	place := func(name string) string {
		if p, ok := places[name]; ok {
			return p
		}
		return yamldoc.At(n)
	}
	states := []string{string(muster.RegistrationApproved), string(muster.RegistrationBlocked)}
	if !slices.Contains(states, string(t.State)) {
		f.Bad(path+".state", place("state"), yamldoc.Meant(string(t.State), states), "%q is not a state", yamldoc.Clip(string(t.State)))
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
	l := looks{mac: "52:54:00:00:00:01", serial: "1", vendor: "1", product: "1", at: "1", port: "1"}
	d, err := t.of(l)
	if err != nil {
		why, hint := muster.ReasonBadValue, ""
		if e := (*muster.Error)(nil); errors.As(err, &e) {
			why, hint = e.Reason, e.Hint
		}
		f.Wrong(why, path, place("power"), hint, "%s", err)
		return
	}
	r := muster.Registration{
		ID: d.Name, Class: d.Class, Rack: d.Rack, Position: d.Position, Power: d.Power, MinTrust: d.MinTrust,
		NICs: []muster.RegisteredNIC{{MAC: l.mac, Use: muster.UseManagement}},
	}
	if r.ID == "" {
		r.ID = "m-525400000001"
	}
	for _, p := range r.Check() {
		field, below, _ := strings.Cut(p.Field, ".")
		switch { // a rule has the fields of a power address beside it
		case p.Field == "power.certificate_sha256":
			p.Hint = "name the file with the certificate of who signed those of the controllers: power_authority_file"
		case p.Field == "power.authority":
			field, p.Field = "power_authority_file", "power_authority_file"
		case field == "power" && slices.Contains([]string{"quirk", "boot_mode", "boot", "interface", "proves"}, below):
			field = "power_" + below
			p.Field = field
		}
		f.Wrong(p.Reason, path+"."+p.Field, place(field), p.Hint, "%s", p.Message)
	}
	for _, p := range d.Power.CheckPassword([]byte(t.Password)) {
		f.Wrong(p.Reason, path+".power_password_file", place("power_password_file"), p.Hint, "%s", p.Message)
	}
	for _, p := range d.Power.CheckPowerKey(string(t.PowerKey)) {
		f.Wrong(p.Reason, path+".power_key_file", place("power_key_file"), p.Hint, "%s", p.Message)
	}
	if d.Power.HasController() && t.Password == "" && t.State == muster.RegistrationApproved {
		f.Wrong(muster.ReasonRequired, path+".power_password_file", place("power"), "name the file with it: power_password_file", "the password of the controllers is missing")
	}
}
