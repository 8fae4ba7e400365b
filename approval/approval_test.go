package approval_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/approval"
	"pgregory.net/rapid"
)

const rules = `
rules:
- name: not ours
  match: {mac: "52:54:00:ff:*"}
  then: {state: forbidden}
- name: rack by port
  match: {switch: "sw-r*", port: "?*", tpm: required}
  then: {state: approved, rack: "{neighbour}", position: "{port}", name: "r-n{position:2}", power: "ipmi://admin@{name}-bmc", power-password-file: bmc, least-trust: tpm, class: epyc, service: yes}
- name: bought in spring
  match: {serial-list: serials, maker: "dell*", product: "*R6?25"}
  then: {state: approved, name: "{serial}"}
`

func read(path string) ([]byte, error) {
	switch path {
	case "bmc":
		return []byte("sesame\nx"), nil
	case "serials":
		return []byte("# spring\nABC 123 # the first\n\nABC124\n"), nil
	}
	return nil, os.ErrNotExist
}

func guest() muster.Guest {
	return muster.Guest{
		MAC: "52:54:00:aa:00:01", Serial: "ABC 123",
		Facts: &muster.Facts{Maker: "Dell Inc.", Product: "PowerEdge R6525"},
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	r, err := approval.Decode("rules.yaml", []byte(rules), read)
	if err != nil {
		t.Fatalf("%v %+v", err, problems(err))
	}
	if text := fmt.Sprintf("%v %+v %#v", r, r, r); strings.Contains(text, "sesame") {
		t.Errorf("a password is printed: %s", text)
	}
	for name, c := range map[string]struct {
		change func(*muster.Guest)
		want   string // rule, state, name, rack, position, power, claimed
	}{
		"serial":          {func(*muster.Guest) {}, "bought in spring approved abc-123   wol true"},
		"no serial":       {func(g *muster.Guest) { g.Serial = "" }, ""},
		"another serial":  {func(g *muster.Guest) { g.Serial = "ABC12" }, ""},
		"another maker":   {func(g *muster.Guest) { g.Facts.Maker = "Bell" }, ""},
		"no facts":        {func(g *muster.Guest) { g.Facts = nil }, ""},
		"forbidden first": {func(g *muster.Guest) { g.MAC = "52:54:00:ff:00:01" }, "not ours forbidden    wol true"},
		"port of a relay": {func(g *muster.Guest) {
			g.Switch, g.Port, g.Endorsement = "SW-R1", "7", []byte{1}
		}, "rack by port approved r-n07 SW-R1 7 ipmi://admin@r-n07-bmc false"},
		"port by LLDP": {func(g *muster.Guest) {
			g.Endorsement = []byte{1}
			g.Facts.NICs = []muster.NIC{{MAC: "x", Neighbour: &muster.Neighbour{System: "sw-r9", Port: "9"}}, {MAC: g.MAC, Neighbour: &muster.Neighbour{System: "sw-r2", Port: "12"}}}
		}, "rack by port approved r-n12 sw-r2 12 ipmi://admin@r-n12-bmc true"},
		"no TPM": {func(g *muster.Guest) { g.Switch, g.Port = "sw-r1", "7" }, "bought in spring approved abc-123   wol true"},
		"port is no number": {func(g *muster.Guest) {
			g.Switch, g.Port, g.Endorsement = "sw-r1", "ge-0/0/7", []byte{1}
		}, "rack by port: its position is \"ge-0/0/7\", which is no number"},
	} {
		g := guest()
		c.change(&g)
		d, ok, err := r.For(g)
		got := ""
		switch {
		case err != nil:
			got = d.Rule + ": " + err.Error()
		case ok:
			got = fmt.Sprint(d.Rule, " ", d.State, " ", d.Name, " ", d.Rack, " ", d.Position, " ", d.Power, " ", d.Claimed)
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
	g := guest()
	g.Switch, g.Port, g.Endorsement = "sw-r1", "7", []byte{1}
	if d, _, _ := r.For(g); d.Password != "sesame" || d.LeastTrust != muster.TrustTPM || d.Class != "epyc" || !d.Service {
		t.Errorf("%+v", d)
	}
}

func problems(err error) []muster.Problem {
	var e *muster.Error
	if errors.As(err, &e) {
		return e.Problems
	}
	return nil
}

// All that is wrong is told at once, with its place and a cure.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"several": {`
rules:
- name: a
  match: {make: x, mac: zz, tpm: yes}
  then: {state: aproved, name: "{seria}", rack: "{position}", colour: red}
- name: a
  then: {state: approved, power: "ipmi://admin:sesame@x"}
- match: {serial-list: none, port: ""}
`, []string{
			"rules[0].match.make line 4 did you mean maker?", "rules[0].match.mac line 4 matches no address", "rules[0].match.tpm line 4 write required",
			"rules[0].then.state line 5 did you mean approved?", "rules[0].then.name line 5 did you mean serial?", "rules[0].then.rack line 5 {position} is not known yet",
			"rules[0].then.colour line 5 no such field", "rules[1].name line 6 line 3 has this name", "rules[1].match line 6 which machines",
			"rules[1].then line 7 leave the password out", "rules[2].name line 8 needs a name", "rules[2].then line 8 what becomes of", "rules[2].match.serial-list line 8 cannot be read",
			"rules[2].match.port line 8 is empty",
		}},
		"nothing asked":  {"rules: [{name: a, match: {}, then: {state: approved}}]", []string{"rules[0].match line 1 which machines"}},
		"no password":    {"rules: [{name: a, match: {mac: '*'}, then: {state: approved, power: 'ipmi://a@{serial}'}}]", []string{"rules[0].then.power-password-file line 1 missing"}},
		"brace":          {"rules: [{name: a, match: {mac: '*'}, then: {state: approved, name: 'a{b'}}]", []string{"rules[0].then.name line 1 has no }"}},
		"digits":         {"rules: [{name: a, match: {mac: '*'}, then: {state: approved, name: 'a{port:x}'}}]", []string{"rules[0].then.name line 1 no number of digits"}},
		"never a number": {"rules: [{name: a, match: {mac: '*'}, then: {state: approved, rack: r1, name: 'a{rack:2}'}}]", []string{"rules[0].then line 1 is no number"}},
		"name":           {"rules: [{name: a, match: {mac: '*'}, then: {state: approved, rack: '(1)'}}]", []string{"rules[0].then.rack line 1 cannot be a label"}},
		"empty":          {"", []string{"rules  no rule"}},
		"no list":        {"rules: x", []string{"rules line 1 a list of rules"}},
		"empty list":     {"rules: []", []string{"rules  no rule"}},
		"not YAML":       {"rules: [", []string{"file  not valid YAML"}},
		"two":            {"rules: []\n---\nrules: []", []string{"file  more than one document"}},
		"alias":          {"rules: [&a {name: a, match: {mac: '*'}, then: {state: approved}}, *a]", []string{"rules[1] line 1 fields are expected"}},
	} {
		_, err := approval.Decode("x.yaml", []byte(c.text), read)
		if muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%s: %v", name, err)
		}
		list := problems(err)
		for _, w := range c.want {
			found := false
			for _, p := range list {
				head := p.Field + " " + p.Place + " "
				if strings.HasPrefix(w, head) && strings.Contains(p.Message+" "+p.Hint, strings.TrimPrefix(w, head)) {
					found = true
				}
			}
			if !found {
				t.Errorf("%s: nothing says %q: %+v", name, w, list)
			}
		}
		if strings.Contains(fmt.Sprint(err, list), "sesame") {
			t.Errorf("%s: a secret is told", name)
		}
	}
}

// A pattern without places fits itself, with a star for any part of it, and nothing
// that lacks a plain part of it.
func TestPatternProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a-c]{1,12}`).Draw(t, "maker")
		i := rapid.IntRange(0, len(s)).Draw(t, "from")
		j := rapid.IntRange(i, len(s)).Draw(t, "to")
		p := s[:i] + "*" + s[j:]
		r := approval.Rules{{Name: "a", Match: approval.Match{Maker: p}, Then: approval.Then{State: muster.RegistrationApproved}}}
		g := muster.Guest{MAC: "52:54:00:00:00:01", Facts: &muster.Facts{Maker: strings.ToUpper(s)}}
		if _, ok, err := r.For(g); !ok || err != nil {
			t.Fatalf("%q does not fit %q: %v", p, s, err)
		}
		g.Facts.Maker = "x" + s + "x"
		if _, ok, _ := r.For(g); ok && (i > 0 || j < len(s)) {
			t.Fatalf("%q fits %q", p, g.Facts.Maker)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(rules), "52:54:00:aa:00:01", "ABC 123", "sw-r1", "7")
	f.Add([]byte("rules: [{name: a, match: {mac: '*'}, then: {state: approved, name: '{serial}', rack: '{neighbour}'}}]"), "52:54:00:aa:00:01", "\x1b[2J", "", "")
	f.Fuzz(func(t *testing.T, data []byte, mac, serial, at, port string) {
		r, err := approval.Decode("x.yaml", data, read)
		if (err == nil) != (len(r) > 0) {
			t.Fatalf("%d rules and %v", len(r), err)
		}
		d, ok, err := r.For(muster.Guest{MAC: mac, Serial: serial, Switch: at, Port: port})
		if ok && err == nil && d.State != muster.RegistrationApproved && d.State != muster.RegistrationForbidden {
			t.Fatalf("%+v", d)
		}
	})
}
