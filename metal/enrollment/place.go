package enrollment

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/yamldoc"
)

// Places are what may stand in braces in the texts of a rule, in the order in which they
// become known: rack may use what is before it, position the rack, and so on.
// {position:2} writes a number with two digits.
func Places() []string {
	return []string{"mac", "serial", "vendor", "product", "neighbour", "port", "rack", "position", "class", "name"}
}

// texts are those of a rule that have places, in the order of Places.
func (t Then) texts() []struct{ field, value string } {
	return []struct{ field, value string }{{"rack", t.Rack}, {"position", t.Position}, {"class", t.Class}, {"name", t.Name}, {"power", t.Power}}
}

// of fills in what is known of a machine.
func (t Then) of(l looks) (Decision, error) {
	d := Decision{State: t.State, Password: t.Password, PowerKey: t.PowerKey, MinTrust: t.MinTrust, Service: t.Service}
	known := map[string]string{
		"mac": strings.ReplaceAll(l.mac, ":", ""), "serial": l.serial, "vendor": l.vendor, "product": l.product, "neighbour": l.at, "port": l.port,
	}
	for _, x := range t.texts() {
		v, err := fill(x.value, known)
		if err != nil {
			return d, err
		}
		if x.field == "name" {
			v = nameOf(v)
		}
		known[x.field] = v
	}
	d.Rack, d.Position, d.Class, d.Name = known["rack"], known["position"], known["class"], muster.MachineID(known["name"])
	power, err := muster.ParsePowerAddress(cmp.Or(known["power"], string(muster.PowerWOL)))
	if err != nil {
		return d, err
	}
	d.Power = t.Switched
	d.Power.Kind, d.Power.Address, d.Power.User, d.Power.System = power.Kind, power.Address, power.User, power.System
	return d, nil
}

// nameOf makes a machine's name of a text: serial numbers have capitals and spaces.
func nameOf(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s), "-.")
}

// piece is a part of a text: plain, or a place.
type piece struct {
	text   string
	place  bool
	digits int // of a number in that place; 0: as it is
}

// split takes a text apart; what is wrong with it is said in words.
func split(s string) (out []piece, wrong string) {
	for s != "" {
		plain, rest, open := strings.Cut(s, "{")
		if strings.Contains(plain, "}") {
			return nil, "a } has no {"
		}
		if plain != "" {
			out = append(out, piece{text: plain})
		}
		if !open {
			break
		}
		inner, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, "a { has no }"
		}
		name, width, has := strings.Cut(inner, ":")
		p := piece{text: name, place: true}
		if has {
			n, err := strconv.Atoi(width)
			if err != nil || n < 1 || n > 9 {
				return nil, fmt.Sprintf("%q is not a number of digits", yamldoc.Clip(width))
			}
			p.digits = n
		}
		out, s = append(out, p), after
	}
	return out, ""
}

// fill writes a text for a machine. EInvalid: the machine does not have what is asked.
func fill(s string, known map[string]string) (string, error) {
	pieces, wrong := split(s)
	if wrong != "" {
		return "", muster.Errorf(muster.EInvalid, "%s", wrong)
	}
	var b strings.Builder
	for _, p := range pieces {
		if !p.place {
			b.WriteString(p.text)
			continue
		}
		v := known[p.text]
		if v == "" {
			return "", muster.Errorf(muster.EInvalid, "its %s is not known, which %q asks for", p.text, s)
		}
		if p.digits > 0 {
			n, err := strconv.ParseUint(v, 10, 31)
			if err != nil {
				return "", muster.Errorf(muster.EInvalid, "its %s is %q, which is not a number", p.text, yamldoc.Clip(v))
			}
			v = fmt.Sprintf("%0*d", p.digits, n)
		}
		b.WriteString(v)
	}
	return b.String(), nil
}
