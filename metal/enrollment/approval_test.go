package enrollment_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/metal/enrollment"
	"pgregory.net/rapid"
)

const rules = `
rules:
- name: not ours
  match: {mac: "52:54:00:ff:*"}
  then: {state: blocked}
- name: rack by port
  match: {switch: "sw-r*", port: "?*", tpm: required}
  then: {state: approved, rack: "{neighbour}", position: "{port}", name: "r-n{position:2}", power: "ipmi://admin@{name}-bmc", power_password_file: bmc, power_key_file: bmc, power_quirk: suite3, power_boot_mode: uefi, min_trust: tpm, class: epyc, service: yes}
- name: bought in spring
  match: {serial-list: serials, vendor: "dell*", product: "*R6?25"}
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

func guest() muster.DiscoveredMachine {
	return muster.DiscoveredMachine{
		MAC: "52:54:00:aa:00:01", Serial: "ABC 123",
		Facts: &muster.Facts{Vendor: "Dell Inc.", Product: "PowerEdge R6525"},
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	r, err := enrollment.Decode("rules.yaml", []byte(rules), read)
	if err != nil {
		t.Fatalf("%v %+v", err, problems(err))
	}
	if text := fmt.Sprintf("%v %+v %#v", r, r, r); strings.Contains(text, "sesame") {
		t.Errorf("a password is printed: %s", text)
	}
	for name, c := range map[string]struct {
		change func(*muster.DiscoveredMachine)
		want   string // rule, state, name, rack, position, power, claimed
	}{
		"serial":         {func(*muster.DiscoveredMachine) {}, "bought in spring approved abc-123   wol true"},
		"no serial":      {func(g *muster.DiscoveredMachine) { g.Serial = "" }, ""},
		"another serial": {func(g *muster.DiscoveredMachine) { g.Serial = "ABC12" }, ""},
		"another maker":  {func(g *muster.DiscoveredMachine) { g.Facts.Vendor = "Bell" }, ""},
		"no facts":       {func(g *muster.DiscoveredMachine) { g.Facts = nil }, ""},
		"blocked first":  {func(g *muster.DiscoveredMachine) { g.MAC = "52:54:00:ff:00:01" }, "not ours blocked    wol true"},
		"port of a relay": {func(g *muster.DiscoveredMachine) {
			g.Switch, g.Port, g.Endorsement = "SW-R1", "7", []byte{1}
		}, "rack by port approved r-n07 SW-R1 7 ipmi://admin@r-n07-bmc false"},
		"port by LLDP": {func(g *muster.DiscoveredMachine) {
			g.Endorsement = []byte{1}
			g.Facts.NICs = []muster.NIC{{MAC: "x", Neighbour: &muster.Neighbour{System: "sw-r9", Port: "9"}}, {MAC: g.MAC, Neighbour: &muster.Neighbour{System: "sw-r2", Port: "12"}}}
		}, "rack by port approved r-n12 sw-r2 12 ipmi://admin@r-n12-bmc true"},
		"no TPM": {func(g *muster.DiscoveredMachine) { g.Switch, g.Port = "sw-r1", "7" }, "bought in spring approved abc-123   wol true"},
		"port is not a number": {func(g *muster.DiscoveredMachine) {
			g.Switch, g.Port, g.Endorsement = "sw-r1", "ge-0/0/7", []byte{1}
		}, "rack by port: its position is \"ge-0/0/7\", which is not a number"},
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
	if d, _, _ := r.For(g); d.Password != "sesame" || d.PowerKey != "sesame" || d.MinTrust != muster.TrustTPM || d.Class != "epyc" || !d.Service || d.Power.Quirk != "suite3" || d.Power.BootMode != muster.BootModeUEFI {
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
			"rules[0].match.make unknown-field line 4, column 11",
			"rules[0].match.mac bad-value line 4, column 25",
			"rules[0].match.tpm bad-value line 4, column 34",
			"rules[0].then.colour unknown-field line 5, column 63",
			"rules[0].then.state bad-value line 5, column 17",
			"rules[0].then.rack bad-value line 5, column 49",
			"rules[0].then.name bad-value line 5, column 32",
			"rules[1].name given-twice line 6, column 3",
			"rules[1].match required line 6, column 3",
			"rules[1].then bad-power-address line 7, column 34",
			"rules[2].name bad-name line 8, column 3",
			"rules[2].match.serial-list file-unreadable line 8, column 24",
			"rules[2].match.serial-list required line 8, column 24",
			"rules[2].match.port bad-value line 8, column 36",
			"rules[2].then required line 8, column 3",
		}},
		"nothing asked": {"rules: [{name: a, match: {}, then: {state: approved}}]", []string{"rules[0].match required line 1, column 26"}},
		"no password":   {"rules: [{name: a, match: {mac: '*'}, then: {state: approved, power: 'ipmi://a@{serial}'}}]", []string{"rules[0].then.power_password_file required line 1, column 69"}},
		"no certificate": {"rules: [{name: a, match: {mac: '*'}, then: {state: approved, power: 'redfish://a@{serial}', power_password_file: bmc}}]", []string{
			"rules[0].then.power.certificate_sha256 required line 1, column 69"}},
		"power": {"rules: [{name: a, match: {mac: '*'}, then: {state: approved, power: 'ipmi://a@{serial}', power_password_file: bmc, power_quirk: dell, power_boot_mode: x, power_boot: http}}]", []string{
			"rules[0].then.power_boot_mode bad-value line 1, column 152", "rules[0].then.power_boot contradiction line 1, column 167", "rules[0].then.power_quirk bad-value line 1, column 129"}},
		"brace":          {"rules: [{name: a, match: {mac: '*'}, then: {state: approved, name: 'a{b'}}]", []string{"rules[0].then.name bad-value line 1, column 68"}},
		"digits":         {"rules: [{name: a, match: {mac: '*'}, then: {state: approved, name: 'a{port:x}'}}]", []string{"rules[0].then.name bad-value line 1, column 68"}},
		"never a number": {"rules: [{name: a, match: {mac: '*'}, then: {state: approved, rack: r1, name: 'a{rack:2}'}}]", []string{"rules[0].then invalid line 1, column 44"}},
		"name":           {"rules: [{name: a, match: {mac: '*'}, then: {state: approved, rack: '(1)'}}]", []string{"rules[0].then.rack bad-value line 1, column 68"}},
		"empty":          {"", []string{"rules required"}},
		"no list":        {"rules: x", []string{"rules wrong-type line 1, column 8"}},
		"empty list":     {"rules: []", []string{"rules required"}},
		"not YAML":       {"rules: [", []string{"file bad-syntax"}},
		"two":            {"rules: []\n---\nrules: []", []string{"file bad-syntax"}},
		"alias": {"rules: [&a {name: a, match: {mac: '*'}, then: {state: approved}}, *a]", []string{
			"rules[1] wrong-type line 1, column 67",
			"rules[1].name bad-name line 1, column 67",
			"rules[1].match required line 1, column 67",
			"rules[1].then required line 1, column 67",
		}},
	} {
		_, err := enrollment.Decode("x.yaml", []byte(c.text), read)
		if muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%s: %v", name, err)
		}
		if got := errortest.Problems(errortest.Listed(err)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if strings.Contains(fmt.Sprint(err, errortest.Listed(err)), "sesame") {
			t.Errorf("%s: a secret is told", name)
		}
	}
}

// A pattern without places fits itself, with a star for any part of it, and nothing
// that lacks a plain part of it.
func TestPatternProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a-c]{1,12}`).Draw(t, "vendor")
		i := rapid.IntRange(0, len(s)).Draw(t, "from")
		j := rapid.IntRange(i, len(s)).Draw(t, "to")
		p := s[:i] + "*" + s[j:]
		r := enrollment.Rules{{Name: "a", Match: enrollment.Match{Vendor: p}, Then: enrollment.Then{State: muster.RegistrationApproved}}}
		g := muster.DiscoveredMachine{MAC: "52:54:00:00:00:01", Facts: &muster.Facts{Vendor: strings.ToUpper(s)}}
		if _, ok, err := r.For(g); !ok || err != nil {
			t.Fatalf("%q does not fit %q: %v", p, s, err)
		}
		g.Facts.Vendor = "x" + s + "x"
		if _, ok, _ := r.For(g); ok && (i > 0 || j < len(s)) {
			t.Fatalf("%q fits %q", p, g.Facts.Vendor)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(rules), "52:54:00:aa:00:01", "ABC 123", "sw-r1", "7")
	f.Add([]byte("rules: [{name: a, match: {mac: '*'}, then: {state: approved, name: '{serial}', rack: '{neighbour}'}}]"), "52:54:00:aa:00:01", "\x1b[2J", "", "")
	f.Fuzz(func(t *testing.T, data []byte, mac, serial, at, port string) {
		r, err := enrollment.Decode("x.yaml", data, read)
		if (err == nil) != (len(r) > 0) {
			t.Fatalf("%d rules and %v", len(r), err)
		}
		d, ok, err := r.For(muster.DiscoveredMachine{MAC: mac, Serial: serial, Switch: at, Port: port})
		if ok && err == nil && d.State != muster.RegistrationApproved && d.State != muster.RegistrationBlocked {
			t.Fatalf("%+v", d)
		}
	})
}
