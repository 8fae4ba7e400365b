package muster

import (
	"strings"
	"testing"
)

// Each pair is one controller, written in two ways.
func TestOneControllerHasOneSpelling(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"redfish://admin@10.9.0.50", "redfish://admin@10.9.0.50:443"},
		{"ipmi://admin@bmc-9", "ipmi://admin@BMC-9"},
		{"ipmi://admin@bmc-9", "ipmi://admin@bmc-9.:623"},
		{"redfish://a@[fd00:77::1]", "redfish://a@fd00:77::1"},
		{"ipmi://a@[FD00::AA]:623", "ipmi://a@[fd00:0::aa]"},
		{"ipmi://a@fd00::aa", "ipmi://a@[fd00::aa]"},
		{"redfish://a@10.9.0.50", "redfish://a@[::ffff:10.9.0.50]"},
		{"redfish://a@10.9.0.50/redfish/v1/Systems/1", "redfish://a@10.9.0.50:443/redfish/v1/Systems/1/"},
	} {
		a, err := ParsePowerAddress(c[0])
		b, err2 := ParsePowerAddress(c[1])
		if err != nil || err2 != nil || a != b {
			t.Errorf("%s and %s: %+v, %+v, %v, %v", c[0], c[1], a, b, err, err2)
		}
		if again, err := ParsePowerAddress(a.String()); err != nil || again != a {
			t.Errorf("%s is printed %s and read %+v, %v", c[0], a, again, err)
		}
	}
	for _, s := range []string{
		"redfish://admin@10.9.0.300", "redfish://admin@bmc.rack.300", "ipmi://a@10.9.0.300.", "ipmi://a@1.2.3", "redfish://a@b:0", "redfish://a@b:99999", "ipmi://a@b/redfish/v1/Systems/1",
		"redfish://a@b/other", "redfish://a@", "redfish://a@b c",
	} {
		if p, err := ParsePowerAddress(s); err == nil {
			t.Errorf("%s is taken: %+v", s, p)
		}
	}
	p, err := ParsePowerAddress(`redfish://DOM\admin@b:8443`)
	if err != nil || p.User != `DOM\admin` || p.Address != "b:8443" {
		t.Errorf("%+v, %v", p, err)
	}
	if again, err := ParsePowerAddress(p.String()); err != nil || again != p {
		t.Errorf("%s: %+v, %v", p, again, err)
	}
	for a, want := range map[string]string{"[fd00::10]": "fd00::10", "b:99": "b", "10.0.0.1": "10.0.0.1", "[fd00::10]:99": "fd00::10"} {
		if host, _ := hostPort(a); host != want {
			t.Errorf("%s: host %s", a, host)
		}
	}
}

func TestSerialNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"labdef4ccb425", "LABDEF4CCB425"}, {" AB  CD ", "AB CD"}, {"Default string", ""}, {"0123456789", "none"}} {
		if CanonicalSerial(c[0]) != CanonicalSerial(c[1]) {
			t.Errorf("%q and %q differ", c[0], c[1])
		}
	}
	for _, s := range []string{
		"", "Default string", "none", "0", "System Serial Number", "To Be Filled By O.E.M.", "0123456789", "Enter Serial", "....",
		"00000000-0000-0000-0000-000000000000", "FFFFFFFF-ffff-ffff-FFFF-ffffffffffff", "03000200-0400-0500-0006-000700080009",
	} {
		if !IsPlaceholder(s) {
			t.Errorf("%q identifies something", s)
		}
	}
	for _, s := range []string{"LABDEF4CCB425", "/5Q4Q7Y1/CN1234/", "5", "F00", "000001"} {
		if IsPlaceholder(s) {
			t.Errorf("%q identifies nothing", s)
		}
	}
}

func FuzzPowerAddress(f *testing.F) {
	for _, s := range []string{"wol", "ipmi://a@[fe80::1%25eno2]", "redfish://a@b/redfish/v1/Systems/1", `ipmi://D\u@h`, "script:///x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePowerAddress(s)
		if err != nil || strings.ContainsAny(s, "\x00\n") {
			return
		}
		if p.Kind == PowerWOL || p.Kind == PowerScript {
			return
		}
		again, err := ParsePowerAddress(p.String())
		if err != nil || again != p {
			t.Fatalf("%q: %+v is printed %q and read %+v, %v", s, p, p.String(), again, err)
		}
	})
}
