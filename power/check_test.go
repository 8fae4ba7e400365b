package power

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

func password(context.Context) ([]byte, error) { return []byte("hunter2"), nil }

// TestCheckNamesAllProblems: one look shows everything that is wrong.
func TestCheckNamesAllProblems(t *testing.T) {
	t.Parallel()
	pin := "sha256:" + strings.Repeat("ab", 32)
	for _, c := range []struct {
		name   string
		a      Address
		fields []string
	}{
		{"wol", Address{Kind: KindWOL, MACs: []string{"52:54:00:00:00:01"}}, nil},
		{"ipmi", Address{Kind: KindIPMI, Host: "10.0.0.9", User: "u", Secret: password}, nil},
		{"redfish", Address{Kind: KindRedfish, Host: "bmc-1.example", User: "u", Secret: password, Certificate: pin, System: "/redfish/v1/Systems/1", Boot: "http"}, nil},
		{"script", Address{Kind: KindScript, Program: "/opt/power"}, nil},
		{"a slip", Address{Kind: "ipmo"}, []string{"kind"}},
		{"wol without", Address{Kind: KindWOL}, []string{"macs"}},
		{"ipmi without", Address{Kind: KindIPMI}, []string{"host", "secret", "user"}},
		{"redfish without", Address{Kind: KindRedfish, Host: "h", User: "u", Secret: password}, []string{"certificate"}},
		{"script without", Address{Kind: KindScript, Program: "power"}, []string{"program"}},
		{"an option in the host", Address{Kind: KindIPMI, Host: "-oProxyCommand", User: "u", Secret: password}, []string{"host"}},
		{"a URL", Address{Kind: KindRedfish, Host: "https://x@y/", User: "u", Secret: password, Certificate: pin}, []string{"host"}},
		{"many", Address{Kind: KindIPMI, Host: "a b", Port: 70000, User: strings.Repeat("u", 17), Secret: password, Boot: "http", Program: "/x", Interface: "eth0",
			Certificate: pin, Proves: true, System: "x", MACs: []string{"zz", "01:00:00:00:00:01", "52:54:00:00:00:01", "52:54:00:00:00:01"}},
			[]string{"boot", "certificate", "host", "interface", "macs[0]", "macs[1]", "macs[3]", "port", "program", "proves", "system", "user"}},
		{"a pin too short", Address{Kind: KindRedfish, Host: "h", User: "u", Secret: password, Certificate: "sha256:abcd"}, []string{"certificate"}},
		{"a path elsewhere", Address{Kind: KindRedfish, Host: "h", User: "u", Secret: password, Certificate: pin, System: "//evil/x"}, []string{"system"}},
		{"no authority", Address{Kind: KindRedfish, Host: "h", User: "u", Secret: password, Authority: "x"}, []string{"authority"}},
	} {
		err := c.a.Check()
		var e *muster.Error
		if len(c.fields) == 0 {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if !errors.As(err, &e) || e.Code != muster.EInvalid {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := map[string]bool{}
		for _, p := range e.Problems {
			got[p.Field] = true
		}
		for _, f := range c.fields {
			if !got[f] {
				t.Errorf("%s: no problem with %s: %v", c.name, f, err)
			}
			delete(got, f)
		}
		if len(got) > 0 {
			t.Errorf("%s: more problems than there are: %v", c.name, got)
		}
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	err := Drivers{KindIPMI: {Quirks: []string{"suite3", "slow-boot"}}}.Check(Address{Kind: KindIPMI, Host: "h", User: "u", Secret: password, Quirk: "suite-3"})
	if err == nil || !strings.Contains(err.Error(), "did you mean suite3?") {
		t.Errorf("got %v", err)
	}
	if err := (Address{Kind: "redfsh"}).Check(); err == nil || !strings.Contains(err.Error(), "did you mean redfish?") {
		t.Errorf("got %v", err)
	}
}

func TestSecretIsNotPrinted(t *testing.T) {
	t.Parallel()
	target := Target{Machine: "m", Address: Address{Kind: KindIPMI, Host: "h", User: "u", Secret: password}}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		if s := fmt.Sprintf(verb, target); strings.Contains(s, "hunter2") {
			t.Errorf("%s prints %s", verb, s)
		}
	}
}

// FuzzCheck writes any text into an address: what passes is harmless as a part
// of an argument, a URL or a header.
func FuzzCheck(f *testing.F) {
	f.Add("ipmi", "10.0.0.1", "admin", "52:54:00:00:00:01", "/redfish/v1/Systems/1", "sha256:00")
	f.Add("redfish", "fe80::1%eth0", "x\n", "", "//", "")
	f.Fuzz(func(t *testing.T, kind, host, user, mac, system, cert string) {
		a := Address{Kind: Kind(kind), Host: host, User: user, MACs: []string{mac}, System: system, Certificate: cert, Secret: password, Program: "/x"}
		if a.Check() != nil {
			return
		}
		if strings.HasPrefix(host, "-") || strings.ContainsAny(host, "/@ \n") || strings.ContainsAny(user, "\n\r\x00") {
			t.Errorf("host %q and user %q passed", host, user)
		}
	})
}
