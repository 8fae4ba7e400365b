package power

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
)

func password(context.Context) ([]byte, error) { return []byte("hunter2"), nil }

// TestCheckNamesAllProblems: one look shows everything that is wrong, of the address and of
// what else a driver needs.
func TestCheckNamesAllProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		target Target
		want   []string // field and reason
	}{
		"wol":          {Target{Address: muster.PowerAddress{Kind: muster.PowerWOL}, MACs: []string{"52:54:00:00:00:01"}}, nil},
		"ipmi":         {Target{Address: muster.PowerAddress{Kind: muster.PowerIPMI, Address: "10.0.0.9", User: "u"}, Secret: password}, nil},
		"script":       {Target{Address: muster.PowerAddress{Kind: muster.PowerScript, Address: "/opt/power"}}, nil},
		"wol without":  {Target{Address: muster.PowerAddress{Kind: muster.PowerWOL}}, []string{"nics required"}},
		"ipmi without": {Target{Address: muster.PowerAddress{Kind: muster.PowerIPMI}}, []string{"power.address required", "power.user required", "power_password required"}},
		"redfish without": {Target{Address: muster.PowerAddress{Kind: muster.PowerRedfish, Address: "h", User: "u"}, Secret: password},
			[]string{"power.certificate_sha256 required"}},
		"interfaces": {Target{Address: muster.PowerAddress{Kind: muster.PowerWOL}, MACs: []string{"zz", "01:00:00:00:00:01"}},
			[]string{"nics[0].mac bad-value", "nics[1].mac bad-value"}},
	} {
		err := c.target.Check()
		if len(c.want) == 0 {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got := errortest.Problems(errortest.Listed(err)); !slices.Equal(got, c.want) || muster.ReasonOf(err) != muster.ReasonBadPowerAddress {
			t.Errorf("%s: %q, want %q: %v", name, got, c.want, err)
		}
		if _, err := (Drivers{}).Open(c.target, Deps{}); muster.ReasonOf(err) != muster.ReasonBadPowerAddress {
			t.Errorf("%s: a driver was looked for: %v", name, err)
		}
	}
}

func TestSecretIsNotPrinted(t *testing.T) {
	t.Parallel()
	target := Target{Machine: "m", Secret: password, Address: muster.PowerAddress{Kind: muster.PowerIPMI, Address: "h", User: "u"}}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		if s := fmt.Sprintf(verb, target); strings.Contains(s, "hunter2") {
			t.Errorf("%s prints %s", verb, s)
		}
	}
}

// Two spellings of one controller are one controller: it gets one command at a time.
func TestControllerHasOneLane(t *testing.T) {
	t.Parallel()
	of := func(address, system string) string {
		return Target{Address: muster.PowerAddress{Kind: muster.PowerRedfish, Address: address, System: system}}.controller()
	}
	if of("BMC1", "/redfish/v1/Systems/1") != of("bmc1.:443", "/redfish/v1/Systems/2") || of("bmc1", "") == of("bmc1:8443", "") {
		t.Error("the lanes are wrong")
	}
}

// FuzzCheck writes any text into an address: what passes is harmless as a part
// of an argument, a URL or a header.
func FuzzCheck(f *testing.F) {
	f.Add("ipmi", "10.0.0.1", "admin", "52:54:00:00:00:01", "/redfish/v1/Systems/1", "00")
	f.Add("redfish", "fe80::1%eth0", "x\n", "", "//", "")
	f.Fuzz(func(t *testing.T, kind, host, user, mac, system, cert string) {
		to := Target{
			MACs: []string{mac}, Secret: password,
			Address: muster.PowerAddress{Kind: muster.PowerKind(kind), Address: host, User: user, System: system, CertificateSHA256: cert},
		}
		if to.Check() != nil || to.Address.Kind == muster.PowerScript {
			return
		}
		if strings.HasPrefix(host, "-") || strings.ContainsAny(host, "/@ \n") || strings.ContainsAny(user, "\n\r\x00") || strings.ContainsAny(system, " \n\r\x00") {
			t.Errorf("host %q, user %q and system %q passed", host, user, system)
		}
	})
}
