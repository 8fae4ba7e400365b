package inventory_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/inventory"
)

const inYAML = `
# the rack by the door
machines:
- name: r1-n01
  nics:
  - {mac: 52-54-00-AA-00-01, use: management, switch: sw1, port: "1"}
  - {mac: 52:54:00:aa:01:01, use: message, switch: sw2, port: "1"}
  power: {kind: ipmi, address: 10.0.0.11, user: admin, password: " opens sesame ", quirk: dell}
  rack: r1
  position: 12
  chassis: c1
  class: epyc
  service: yes
  serial: ABC 123
  uuid: 4C4C4544-0042-3510-8051-B4C04F564432
  least-trust: tpm
- name: r1-n02
  mac: 52:54:00:aa:00:02
  power: wol
`

const inCSV = "\xef\xbb\xbf# the rack by the door\n" +
	"name;mac;message-mac;power;power-password;rack;position;chassis;class;service;serial;uuid;least-trust;switch;port;message-switch;message-port;power-quirk\n" +
	"r1-n01;52-54-00-AA-00-01;5254.00aa.0101;ipmi://admin@10.0.0.11;\" opens sesame \";r1;12;c1;epyc;yes;ABC 123;4c4c4544-0042-3510-8051-b4c04f564432;tpm;sw1;1;sw2;1;dell\n" +
	"r1-n02;52:54:00:aa:00:02;;wol;;;;;;;;;;;;;;\n"

// Both forms say the same, and what is written loosely comes out in one form.
func TestDecode(t *testing.T) {
	t.Parallel()
	want := []muster.Registration{
		{
			ID: "r1-n01", Rack: "r1", Position: "12", Chassis: "c1", Class: "epyc", Service: true, Serial: "ABC 123",
			UUID: "4c4c4544-0042-3510-8051-b4c04f564432", LeastTrust: muster.TrustTPM,
			Power: muster.PowerAddress{Kind: muster.PowerIPMI, Address: "10.0.0.11", User: "admin", Quirk: "dell"},
			NICs: []muster.RegisteredNIC{
				{MAC: "52:54:00:aa:00:01", Use: "management", Switch: "sw1", Port: "1"},
				{MAC: "52:54:00:aa:01:01", Use: "message", Switch: "sw2", Port: "1"},
			},
		},
		{ID: "r1-n02", Power: muster.PowerAddress{Kind: muster.PowerWOL}, NICs: []muster.RegisteredNIC{{MAC: "52:54:00:aa:00:02", Use: "management"}}},
	}
	for name, text := range map[string]string{"rack.yaml": inYAML, "rack.csv": inCSV} {
		list, err := inventory.Decode(name, []byte(text))
		if err != nil || len(list) != 2 {
			t.Fatalf("%s: %d machines, %v, %+v", name, len(list), err, problems(err))
		}
		for i, e := range list {
			if !reflect.DeepEqual(e.Machine, want[i]) {
				t.Errorf("%s: got  %+v\nwant %+v", name, e.Machine, want[i])
			}
		}
		if strings.TrimSpace(string(list[0].Password)) != "opens sesame" || list[1].Password != "" {
			t.Errorf("%s: the passwords are wrong", name)
		}
		if text := fmt.Sprintf("%v %+v %#v %s", list, list[0], list[0], list[0].Password); strings.Contains(text, "sesame") {
			t.Errorf("%s: a password is printed: %s", name, text)
		}
	}
	// A list alone, and JSON, are YAML.
	list, err := inventory.Decode("-", []byte(`[{"name": "a", "mac": "52:54:00:aa:00:02", "power": "redfish://root@bmc1:8443"}]`))
	if err != nil || list[0].Machine.Power.String() != "redfish://root@bmc1:8443" {
		t.Errorf("%+v, %v", list, err)
	}
}

func problems(err error) []muster.Problem {
	var e *muster.Error
	if errors.As(err, &e) {
		return e.Problems
	}
	return nil
}

// All that is wrong is told at once, with its place and a cure, and never a secret.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, text string
		want       []string // field, place and a word of the message or the hint
	}{
		"several": {"x.yaml", `
machines:
- name: A machine
  mac: 52:54:00:aa:00:02
  power: ipmi://admin:sesame@10.0.0.11
  colour: red
- name: b
  mac: 52:54:00:aa:00:02
  racks: r1
  power: {kind: ipmi, address: "no host", password: sesame}
`, []string{
			"machines[0].power line 5 leave the password out", "machines[0].colour line 6 no such field", "A machine.name line 3 is not a name",
			"machines[1].racks line 9 did you mean rack?", "b.nics line 8 A machine has the interface",
			"b.power.address line 10 is no host", "b.power.user line 10 name the account",
		}},
		"deep": {"x.yaml", `
- name: a
  nics:
  - {mac: 52:54:00:aa:00:02, use: management}
  - use: message
    mac: nonsense
  power:
    kind: ipmi
    address: no host
    user: root
`, []string{"a.nics[1].mac line 6 is not", "a.power.address line 9 is no host"}},
		"names":   {"x.csv", "name,mac,power\na,52:54:00:aa:00:02,wol\na,52:54:00:aa:00:03,wol\n", []string{"a.name line 3 line 2 has this name"}},
		"columns": {"x.csv", "name,mac,powe\n", []string{"powe line 1 did you mean power?", "power line 1 the column is missing"}},
		// What is wrong with columns hides nothing of what is wrong below them, and is not
		// told again for each machine.
		"columns and rows": {"x.csv", "# a remark\nname,mac,powe\na,52:54:00:aa:00:02,wol\nA b,52:54:00:aa:00:02,wol\n", []string{
			"powe line 2 did you mean power?", "power line 2 the column is missing", "A b.name line 4 is not a name", "A b.nics line 4 a has the interface",
		}},
		"no table":      {"x.csv", "hello\nworld\n", []string{"hello line 1 no such", "name line 1 is missing", "mac line 1 is missing", "power line 1 is missing"}},
		"twice itself":  {"x.csv", "name,mac,power\na,52:54:00:aa:00:02,wol\na,52:54:00:aa:00:02,wol\n", []string{"a.name line 3 has this name", "a.nics line 3 has the interface"}},
		"short row":     {"x.csv", "name,mac,power\na,52:54:00:aa:00:02\n", []string{"machines line 2 2 values stand under 3 columns"}},
		"quote":         {"x.csv", "name,mac,power\n\"a,52:54:00:aa:00:02,wol\n", []string{"file line 2 cannot be read"}},
		"empty":         {"x.yaml", "", []string{"machines  there is no machine in it"}},
		"empty table":   {"x.csv", "", []string{"machines  there is no machine in it"}},
		"not YAML":      {"x.yaml", "machines: [", []string{"file  not valid YAML"}},
		"another shape": {"x.yaml", "machines: {a: b}", []string{"machines line 1 a list of machines is expected"}},
		"alias":         {"x.yaml", "- &a {name: a, mac: 52:54:00:aa:00:02, power: wol}\n- *a\n", []string{"machines[1] line 2 fields are expected"}},
		"group MAC":     {"x.csv", "name,mac,power\na,53:54:00:aa:00:02,wol\n", []string{"a.nics[0].mac line 2 is not the address"}},
		"two secrets":   {"x.csv", "name,mac,power,power-password,power-password-file\na,52:54:00:aa:00:02,wol,x,y\n", []string{"a.power line 2 keep one"}},
		"service":       {"x.csv", "name,mac,power,service\na,52:54:00:aa:00:02,wol,maybe\n", []string{"service line 2 yes nor no"}},
		"port alone":    {"x.csv", "name,mac,power,port\na,52:54:00:aa:00:02,wol,3\n", []string{"a.nics[0].port line 2 belongs to a switch"}},
	} {
		_, err := inventory.Decode(c.file, []byte(c.text))
		if muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, p := range problems(err) {
			got = append(got, p.Field+" "+p.Place+" "+p.Message+" "+p.Hint)
		}
		for _, w := range c.want {
			found := false
			for i, g := range got {
				if matches(g, w) {
					got, found = append(got[:i:i], got[i+1:]...), true
					break
				}
			}
			if !found {
				t.Errorf("%s: nothing says %q: %q", name, w, got)
			}
		}
		if len(got) > 0 {
			t.Errorf("%s: this is told, too: %q", name, got)
		}
		if text := fmt.Sprint(err, problems(err)); strings.Contains(text, "sesame") {
			t.Errorf("%s: a secret is told: %s", name, text)
		}
	}
}

// matches reports whether a problem begins with the field and the place that are
// wanted, and then has the words.
func matches(got, want string) bool {
	for i := len(want); i > 0; i-- {
		if strings.HasPrefix(got, want[:i]) {
			return strings.Contains(got[i:], strings.TrimSpace(want[i:])) && i > 3
		}
	}
	return false
}

func FuzzDecode(f *testing.F) {
	f.Add("x.yaml", []byte(inYAML))
	f.Add("x.csv", []byte(inCSV))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		list, err := inventory.Decode(name, data)
		if (err == nil) != (len(list) > 0) {
			t.Fatalf("%d machines and %v", len(list), err)
		}
		for _, e := range list {
			if p := e.Machine.Check(); len(p) > 0 {
				t.Fatalf("%+v: %+v", e, p)
			}
		}
	})
}
