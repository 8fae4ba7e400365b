package inventory_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/metal/inventory"
)

const inYAML = `
# the rack by the door
machines:
- name: r1-n01
  nics:
  - {mac: 52-54-00-AA-00-01, use: management, switch: sw1, port: "1"}
  - {mac: 52:54:00:aa:01:01, use: message, switch: sw2, port: "1"}
  power: {kind: ipmi, address: 10.0.0.11, user: admin, password: " opens sesame ", quirk: suite3, boot_mode: UEFI}
  rack: r1
  position: 12
  chassis: c1
  class: epyc
  service: yes
  serial: ABC 123
  uuid: 4C4C4544-0042-3510-8051-B4C04F564432
  min_trust: tpm
- name: r1-n02
  mac: 52:54:00:aa:00:02
  power: wol
`

const inCSV = "\xef\xbb\xbf# the rack by the door\n" +
	"name;mac;message_mac;power;power_password;rack;position;chassis;class;service;serial;uuid;min_trust;switch;port;message_switch;message_port;power_quirk;power_boot_mode\n" +
	"r1-n01;52-54-00-AA-00-01;5254.00aa.0101;ipmi://admin@10.0.0.11;\" opens sesame \";r1;12;c1;epyc;yes;ABC 123;4c4c4544-0042-3510-8051-b4c04f564432;tpm;sw1;1;sw2;1;suite3;UEFI\n" +
	"r1-n02;52:54:00:aa:00:02;;wol;;;;;;;;;;;;;;;\n"

// Both forms say the same, and what is written loosely comes out in one form.
func TestDecode(t *testing.T) {
	t.Parallel()
	want := []muster.Registration{
		{
			ID: "r1-n01", Rack: "r1", Position: "12", Chassis: "c1", Class: "epyc", Service: true, Serial: "ABC 123",
			UUID: "4c4c4544-0042-3510-8051-b4c04f564432", MinTrust: muster.TrustTPM,
			Power: muster.PowerAddress{Kind: muster.PowerIPMI, Address: "10.0.0.11", User: "admin", Quirk: "suite3", BootMode: muster.BootModeUEFI},
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
	list, err := inventory.Decode("-", []byte(`[{"name": "a", "mac": "52:54:00:aa:00:02", "power": {"kind": "redfish", "address": "bmc1:8443", "user": "root", "authority_file": "ca.pem"}}]`))
	if err != nil || list[0].Machine.Power.String() != "redfish://root@bmc1:8443" || list[0].AuthorityFile != "ca.pem" {
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
		want       []string // field, reason and place
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
			"machines[0].power bad-power-address line 5, column 10",
			"machines[0].colour unknown-field line 6, column 3",
			"machines[1].racks unknown-field line 9, column 3",
			"A machine.name bad-value line 3, column 9",
			"b.power.address bad-value line 10, column 32",
			"b.power.user required line 10, column 10",
			"b.nics[0].mac given-twice line 8, column 8",
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
`, []string{"a.nics[1].mac bad-value line 6, column 10", "a.power.address bad-value line 9, column 14"}},
		"names":   {"x.csv", "name,mac,power\na,52:54:00:aa:00:02,wol\na,52:54:00:aa:00:03,wol\n", []string{"a.name given-twice line 3, column A"}},
		"columns": {"x.csv", "name,mac,powe\n", []string{"powe unknown-field line 1, column C", "power required line 1"}},
		// What is wrong with columns hides nothing of what is wrong below them, and is not
		// told again for each machine.
		"columns and rows": {"x.csv", "# a remark\nname,mac,powe\na,52:54:00:aa:00:02,wol\nA b,52:54:00:aa:00:02,wol\n", []string{
			"powe unknown-field line 2, column C",
			"power required line 2",
			"A b.name bad-value line 4, column A",
			"A b.nics[0].mac given-twice line 4, column B",
		}},
		"no table": {"x.csv", "hello\nworld\n", []string{
			"hello unknown-field line 1, column A",
			"name required line 1",
			"mac required line 1",
			"power required line 1",
		}},
		"twice itself":   {"x.csv", "name,mac,power\na,52:54:00:aa:00:02,wol\na,52:54:00:aa:00:02,wol\n", []string{"a.name given-twice line 3, column A", "a.nics[0].mac given-twice line 3, column B"}},
		"short row":      {"x.csv", "name,mac,power\na,52:54:00:aa:00:02\n", []string{"machines bad-syntax line 2"}},
		"quote":          {"x.csv", "name,mac,power\n\"a,52:54:00:aa:00:02,wol\n", []string{"file bad-syntax line 2"}},
		"empty":          {"x.yaml", "", []string{"machines required"}},
		"empty table":    {"x.csv", "", []string{"machines required"}},
		"not YAML":       {"x.yaml", "machines: [", []string{"file bad-syntax"}},
		"another shape":  {"x.yaml", "machines: {a: b}", []string{"machines wrong-type line 1, column 11"}},
		"alias":          {"x.yaml", "- &a {name: a, mac: 52:54:00:aa:00:02, power: wol}\n- *a\n", []string{"machines[1] wrong-type line 2, column 3"}},
		"group MAC":      {"x.csv", "name,mac,power\na,53:54:00:aa:00:02,wol\n", []string{"a.nics[0].mac bad-value line 2, column B"}},
		"two secrets":    {"x.csv", "name,mac,power,power_password,power_password_file\na,52:54:00:aa:00:02,script:///x,x,y\n", []string{"a.power contradiction line 2, column C"}},
		"card's secret":  {"x.csv", "name,mac,power,power_password\na,52:54:00:aa:00:02,wol,sesame1\n", []string{"a.power.password bad-value line 2, column D"}},
		"long secret":    {"x.csv", "name,mac,power,power_password\na,52:54:00:aa:00:02,ipmi://a@b,sesame89012345678901x\n", []string{"a.power.password too-large line 2, column D"}},
		"proves":         {"x.csv", "name,mac,power,power_proves\na,52:54:00:aa:00:02,script:///x,maybe\n", []string{"power_proves bad-value line 2, column D"}},
		"no certificate": {"x.csv", "name,mac,power\na,52:54:00:aa:00:02,redfish://a@b\n", []string{"a.power.certificate_sha256 required line 2, column C"}},
		"two authorities": {"x.csv", "name,mac,power,power_authority,power_authority_file\na,52:54:00:aa:00:02,redfish://a@b,x,y\n",
			[]string{"a.power.authority bad-certificate line 2, column D", "a.power contradiction line 2, column C"}},
		"authority of ipmi": {"x.csv", "name,mac,power,power_authority_file\na,52:54:00:aa:00:02,ipmi://a@b,y\n", []string{"a.power.authority_file contradiction line 2, column D"}},
		"power": {"x.yaml", `
- name: a
  mac: 52:54:00:aa:00:02
  power:
    kind: ipmi
    address: 10.9.0.300
    user: an-account-too-long
    boot: http
    boot_mode: legacy
    interface: eno2
    proves: yes
`, []string{
			"a.power.address bad-value line 6, column 14", "a.power.user too-large line 7, column 11", "a.power.boot_mode bad-value line 9, column 16", "a.power.boot contradiction line 8, column 11",
			"a.power.interface contradiction line 10, column 16", "a.power.proves contradiction line 11, column 13",
		}},
		"service": {"x.csv", "name,mac,power,service\na,52:54:00:aa:00:02,wol,maybe\n", []string{"service bad-value line 2, column D"}},
		// The half that is missing of a switch and its port is named, at its cell if it has one.
		"port alone":           {"x.csv", "name,mac,power,port\na,52:54:00:aa:00:02,wol,3\n", []string{"a.nics[0].switch required line 2"}},
		"message switch alone": {"x.csv", "name,mac,power,message_mac,message_port,message_switch\na,52:54:00:aa:00:02,wol,52:54:00:aa:01:02,,sw1\n", []string{"a.nics[1].port required line 2, column E"}},
		// A name that is missing is named at its cell, and hides nothing.
		"no name": {"x.csv", "mac,name,power\n52:54:00:aa:00:02,,wol\nnonsense,,wlo\n52:54:00:aa:00:03,,wol\n", []string{
			"power bad-power-address line 3, column C",
			"machines[0].name required line 2, column B",
			"machines[1].name required line 3, column B",
			"machines[1].nics[0].mac bad-value line 3, column A",
			"machines[2].name required line 4, column B",
		}},
		"no name in YAML": {"x.yaml", "- {name: '', mac: nonsense, power: wol}\n- {mac: 52:54:00:aa:00:02, power: wol}\n", []string{
			"machines[0].name required line 1, column 10", "machines[0].nics[0].mac bad-value line 1, column 19", "machines[1].name required line 2, column 3",
		}},
		// What is no text is told as that, and not again as something that is missing.
		"no texts": {"x.yaml", "- name: [a]\n  nics: {}\n  power: []\n- name: b\n  nics: [{mac: [], use: management}]\n  power: {kind: {}}\n", []string{
			"machines[0].name wrong-type line 1, column 9", "machines[0].nics wrong-type line 2, column 9", "machines[0].power wrong-type line 3, column 10",
			"machines[1].nics[0].mac wrong-type line 5, column 16", "machines[1].power.kind wrong-type line 6, column 17",
		}},
		// What only one machine can have stands at two.
		"one controller, one port": {"x.csv", "name,mac,power,switch,port\na,52:54:00:aa:00:02,script:///x,s1,5\nb,52:54:00:aa:00:03,ipmi://root@bmc5:623,,\nc,52:54:00:aa:00:04,ipmi://root@BMC5,s1,5\n", []string{
			"c.power.address given-twice line 4, column C", "c.nics[0].port given-twice line 4, column E",
		}},
		"zero bytes": {"x.csv", "name,mac,power\na,52:54:00:aa:00:02,wol\x00\n", []string{"file bad-syntax"}},
	} {
		_, err := inventory.Decode(c.file, []byte(c.text))
		if muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%s: %v", name, err)
		}
		if got := errortest.Problems(errortest.Listed(err)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if text := fmt.Sprint(err, errortest.Listed(err)); strings.Contains(text, "sesame") {
			t.Errorf("%s: a secret is told: %s", name, text)
		}
	}
}

// Of what stands twice in a file both places are named, and the cure is to change the file.
func TestTwiceNamesBothPlaces(t *testing.T) {
	t.Parallel()
	_, err := inventory.Decode("x.csv", []byte("name,mac,power,switch,port\na,52:54:00:aa:00:02,ipmi://r@bmc5,s1,5\na,52:54:00:aa:00:02,ipmi://r@bmc5,s1,5\n"))
	list := errortest.Listed(err)
	if len(list) != 4 {
		t.Fatalf("%+v", list)
	}
	for i, first := range []string{"line 2, column A", "line 2, column C", "line 2, column B", "line 2, column E"} {
		p := list[i]
		if !strings.HasPrefix(p.Place, "line 3, column ") || !strings.Contains(p.Message, first) || !strings.Contains(p.Hint, "change the file") || strings.Contains(p.Hint, "delete") {
			t.Errorf("%+v", p)
		}
	}
}

// Every field of a power address can be written in both forms, whichever are added.
func TestEveryFieldOfPower(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	said := map[string]bool{}
	for name, c := range map[string]struct {
		yaml, csv string
		want      muster.PowerAddress
	}{
		"wol": {"{kind: wol, interface: eno2, boot: pxe}", "power,power_interface,power_boot\nwol,eno2,PXE",
			muster.PowerAddress{Kind: muster.PowerWOL, Interface: "eno2", Boot: muster.BootPXE}},
		"wol to an address": {"{kind: wol, address: 10.0.0.255:7}", "power\nwol://10.0.0.255:7", muster.PowerAddress{Kind: muster.PowerWOL, Address: "10.0.0.255:7"}},
		"ipmi": {"{kind: ipmi, address: b, user: u, quirk: suite3, boot_mode: bios}", "power,power_user,power_quirk,power_boot_mode\nipmi://b,u,suite3,bios",
			muster.PowerAddress{Kind: muster.PowerIPMI, Address: "b", User: "u", Quirk: "suite3", BootMode: muster.BootModeBIOS}},
		"redfish": {
			"{kind: redfish, address: b, user: u, system: /redfish/v1/Systems/1, certificate_sha256: 'SHA256:" + strings.ToUpper(sum) + "', boot_mode: uefi, boot: http}",
			"power,power_certificate_sha256,power_boot_mode,power_boot\nredfish://u@b/redfish/v1/Systems/1," + sum + ",uefi,http",
			muster.PowerAddress{Kind: muster.PowerRedfish, Address: "b", User: "u", System: "/redfish/v1/Systems/1", CertificateSHA256: sum, BootMode: muster.BootModeUEFI, Boot: muster.BootHTTP},
		},
		"redfish by authority": {
			"{kind: redfish, address: b, user: u, authority: " + fmt.Sprintf("%q", authority(t)) + "}",
			"power,power_authority\nredfish://u@b,\"" + authority(t) + "\"",
			muster.PowerAddress{Kind: muster.PowerRedfish, Address: "b", User: "u", Authority: authority(t)},
		},
		"script": {"{kind: script, address: /x, user: u, proves: yes}", "power,power_user,power_proves\nscript:///x,u,yes",
			muster.PowerAddress{Kind: muster.PowerScript, Address: "/x", User: "u", Proves: true}},
	} {
		head, row, _ := strings.Cut(c.csv, "\n")
		for file, text := range map[string]string{
			"x.yaml": "- {name: a, mac: 52:54:00:aa:00:02, power: " + c.yaml + "}\n", "x.csv": "name,mac," + head + "\na,52:54:00:aa:00:02," + row + "\n",
		} {
			list, err := inventory.Decode(file, []byte(text))
			if err != nil || len(list) != 1 || list[0].Machine.Power != c.want {
				t.Errorf("%s in %s: %+v, want %+v: %v", name, file, list, c.want, err)
			}
		}
		for v, i := reflect.ValueOf(c.want), 0; i < v.NumField(); i++ {
			if !v.Field(i).IsZero() {
				said[v.Type().Field(i).Name] = true
			}
		}
	}
	if n := reflect.TypeFor[muster.PowerAddress]().NumField(); len(said) != n {
		t.Errorf("%d of %d fields are tried", len(said), n)
	}
}

// authority is the certificate of somebody who signs, in PEM.
func authority(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("testdata/authority.pem")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func FuzzDecode(f *testing.F) {
	f.Add("x.yaml", []byte(inYAML))
	f.Add("x.csv", []byte(inCSV))
	f.Add("x.csv", []byte("sep=;\r\nMAC address;Host name;BMC;;\r\n;;;;\r\n52:54:00:aa:00:02;a;wol;;\r\n"))
	f.Add("x.txt", []byte(inUTF16("name\tmac\tpower\na\t52:54:00:aa:00:02\twol\n", 0, 1)))
	f.Add("x.csv", []byte(inUTF16("name,mac,power\na,52:54:00:aa:00:02,wol\n", 0, 1)[2:]))
	f.Add("x.csv", []byte("name,mac,power\ra,52:54:00:aa:00:02,wol\r# \xe4\r"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		list, err := inventory.Decode(name, data)
		if err != nil {
			if muster.CodeOf(err) != muster.EInvalid {
				t.Fatal(err)
			}
			return // what could be read is beside it, and may be anything
		}
		if len(list) == 0 {
			t.Fatal("no machine and no error")
		}
		for _, e := range list {
			if p := e.Machine.Check(); len(p) > 0 && e.AuthorityFile == "" {
				t.Fatalf("%+v: %+v", e, p)
			}
		}
	})
}
