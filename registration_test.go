package muster_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"pgregory.net/rapid"
)

func TestParseMAC(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"52:54:00:AA:bb:01": "52:54:00:aa:bb:01", "52-54-00-aa-bb-01\n": "52:54:00:aa:bb:01", "5254.00aa.bb01": "52:54:00:aa:bb:01",
		"53:54:00:aa:bb:01": "", "00:00:00:00:00:00": "", "52:54:00:aa:bb": "", "": "", "52:54:00:aa:bb:01:02": "", "ff:ff:ff:ff:ff:ff": "",
	} {
		got, err := muster.ParseMAC(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestParsePowerAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"wol": "wol", "wol:": "wol", "ipmi://admin@10.0.0.11": "ipmi admin 10.0.0.11", "redfish://root@bmc1:8443": "redfish root bmc1:8443",
		"ipmi://a%20b@[fd00::1]:623": "ipmi a b [fd00::1]", "script:///etc/muster/power": "script  /etc/muster/power", "script://ops@/etc/power": "script ops /etc/power",
		"ipmi://admin:sesame@10.0.0.11": "", "script://etc/power": "", "script:bin/power": "", "wol://x": "wol  x", "wol://a@x": "", "wol://x/y": "", "ssh://x": "", "": "", "ipmi://a@h/path": "", "ipmi://a@h?x=1": "", "%": "",
	} {
		p, err := muster.ParsePowerAddress(text)
		if (err == nil) != (want != "") {
			t.Errorf("%q: %+v, %v", text, p, err)
			continue
		}
		if err != nil {
			if strings.Contains(err.Error(), "sesame") {
				t.Errorf("a password is told: %v", err)
			}
			continue
		}
		if got := strings.TrimSpace(string(p.Kind) + " " + p.User + " " + p.Address); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
		if again, err := muster.ParsePowerAddress(p.String()); err != nil || again != p {
			t.Errorf("%q is written as %q, which is %+v, %v", text, p.String(), again, err)
		}
	}
}

// Whatever is registered passes or is told what is wrong; it never panics, and what is
// right has one interface to boot from.
func TestDemanded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r          muster.Registration
		site, want muster.Trust
	}{
		{muster.Registration{}, muster.TrustPort, muster.TrustPort},
		{muster.Registration{EndorsementKey: []byte{1}}, muster.TrustNetwork, muster.TrustTPM},
		{muster.Registration{EndorsementKey: []byte{1}, MinTrust: muster.TrustNetwork}, muster.TrustPort, muster.TrustNetwork},
		{muster.Registration{MinTrust: muster.TrustTPM}, "", muster.TrustTPM},
	} {
		if got := c.r.RequiredTrust(c.site); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// Everything that an administrator may say is told when it changes, and nothing else.
func TestRegistrationDifferences(t *testing.T) {
	t.Parallel()
	before := muster.Registration{
		ID: "a", Rack: "r1", NICs: []muster.RegisteredNIC{{MAC: "52:54:00:00:00:01", Use: muster.UseManagement}}, Power: muster.PowerAddress{Kind: muster.PowerWOL},
	}
	for want, change := range map[string]func(*muster.Registration){
		"management 52:54:00:00:00:02, before 52:54:00:00:00:01": func(r *muster.Registration) {
			r.NICs = []muster.RegisteredNIC{{MAC: "52:54:00:00:00:02", Use: muster.UseManagement}}
		},
		"message 52:54:00:00:00:03 at sw1 port 7, before none": func(r *muster.Registration) {
			r.NICs = append(slices.Clone(r.NICs), muster.RegisteredNIC{MAC: "52:54:00:00:00:03", Use: muster.UseMessage, Switch: "sw1", Port: "7"})
		},
		"power ipmi://admin@b1, before wol": func(r *muster.Registration) {
			r.Power = muster.PowerAddress{Kind: muster.PowerIPMI, Address: "b1", User: "admin"}
		},
		"power quirk dell, before none":       func(r *muster.Registration) { r.Power.Quirk = "dell" },
		"power certificate 00ff, before none": func(r *muster.Registration) { r.Power.CertificateSHA256 = "00ff" },
		"class epyc, before none":             func(r *muster.Registration) { r.Class = "epyc" },
		"rack none, before r1":                func(r *muster.Registration) { r.Rack = "" },
		"position 2, before none":             func(r *muster.Registration) { r.Position = "2" },
		"chassis c, before none":              func(r *muster.Registration) { r.Chassis = "c" },
		"service true, before false":          func(r *muster.Registration) { r.Service = true },
		"serial S, before none":               func(r *muster.Registration) { r.Serial = "S" },
		"uuid u, before none":                 func(r *muster.Registration) { r.UUID = "u" },
		"least trust tpm, before none":        func(r *muster.Registration) { r.MinTrust = muster.TrustTPM },
		"":                                    func(r *muster.Registration) { r.Seen, r.Trust = time.Now(), muster.TrustPort },
	} {
		r := before
		change(&r)
		if got := strings.Join(r.Differences(before), "; "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRegistrationCheck(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "r1-n01", "10.0.0.1", "bmc:623", "ipmi", "wol", "52:54:00:00:00:01", "management", "message"}))
		r := muster.Registration{
			ID: muster.MachineID(word.Draw(t, "id")), Rack: word.Draw(t, "rack"), UUID: word.Draw(t, "uuid"),
			Power: muster.PowerAddress{Kind: muster.PowerKind(word.Draw(t, "kind")), Address: word.Draw(t, "address"), User: word.Draw(t, "user")},
		}
		for range rapid.IntRange(0, 3).Draw(t, "nics") {
			r.NICs = append(r.NICs, muster.RegisteredNIC{MAC: word.Draw(t, "mac"), Use: word.Draw(t, "use"), Switch: word.Draw(t, "switch"), Port: word.Draw(t, "port")})
		}
		problems := r.Check()
		n := 0
		for _, nic := range r.NICs {
			if nic.Use == muster.UseManagement {
				n++
			}
		}
		if len(problems) == 0 && n != 1 {
			t.Fatalf("%+v passes with %d interfaces to boot from", r, n)
		}
		for _, p := range problems {
			if p.Field == "" || p.Message == "" || p.Hint == "" {
				t.Fatalf("%+v tells nothing", p)
			}
		}
	})
}

// A machine is at the switch of its message interface, not at that of its management.
func TestLeafOfRegistration(t *testing.T) {
	t.Parallel()
	r := muster.Registration{NICs: []muster.RegisteredNIC{{Use: muster.UseManagement, Switch: "mgmt1", Port: "1"}}}
	if got := r.Leaf(); got != "" {
		t.Errorf("%q", got)
	}
	r.NICs = append(r.NICs, muster.RegisteredNIC{Use: muster.UseMessage}, muster.RegisteredNIC{Use: muster.UseMessage, Switch: "leaf2", Port: "7"})
	if got := r.Leaf(); got != "leaf2" {
		t.Errorf("%q", got)
	}
}
