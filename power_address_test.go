package muster_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
)

// authority is the certificate of somebody who signs, and its key, both in PEM.
func authority(t testing.TB) (certificate, key string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true},
		&x509.Certificate{SerialNumber: big.NewInt(1)}, public, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

func TestPowerAddressCheck(t *testing.T) {
	t.Parallel()
	pin := strings.Repeat("ab", 32)
	signer, key := authority(t)
	ipmi := muster.PowerAddress{Kind: muster.PowerIPMI, Address: "10.0.0.11", User: "admin"}
	redfish := muster.PowerAddress{Kind: muster.PowerRedfish, Address: "bmc1", User: "admin", CertificateSHA256: pin}
	script := muster.PowerAddress{Kind: muster.PowerScript, Address: "/etc/muster/power"}
	wol := muster.PowerAddress{Kind: muster.PowerWOL}
	for name, c := range map[string]struct {
		of     muster.PowerAddress
		change func(*muster.PowerAddress)
		want   string // fields and reasons
	}{
		"wol":     {of: wol},
		"ipmi":    {of: ipmi},
		"redfish": {of: redfish},
		"script":  {of: script},
		"all of wol": {of: wol, change: func(a *muster.PowerAddress) {
			a.Address, a.Boot = "10.0.0.255:7", muster.BootPXE
		}},
		"wol by an interface": {of: wol, change: func(a *muster.PowerAddress) { a.Interface = "eno2" }},
		"all of ipmi": {of: ipmi, change: func(a *muster.PowerAddress) {
			a.Address, a.User, a.Quirk, a.BootMode = "[fd00::1]:6230", strings.Repeat("u", 16), "suite3", muster.BootModeUEFI
		}},
		"all of redfish": {of: redfish, change: func(a *muster.PowerAddress) {
			a.Authority, a.System, a.Quirk, a.BootMode, a.Boot = signer+signer, "/redfish/v1/Systems/1", "no-mode", muster.BootModeUEFI, muster.BootHTTP
		}},
		"redfish by its authority": {of: redfish, change: func(a *muster.PowerAddress) { a.CertificateSHA256, a.Authority = "", signer }},
		"all of script":            {of: script, change: func(a *muster.PowerAddress) { a.User, a.Proves = "ops", true }},
		"a long name": {of: ipmi, change: func(a *muster.PowerAddress) {
			a.Address = strings.Repeat("bmc.", 20) + "example:99"
		}},

		"nothing":         {want: "power.kind required"},
		"a slip":          {of: muster.PowerAddress{Kind: "ipmo", Address: "x"}, want: "power.kind bad-value"},
		"ipmi without":    {of: muster.PowerAddress{Kind: muster.PowerIPMI}, want: "power.address required; power.user required"},
		"redfish without": {of: muster.PowerAddress{Kind: muster.PowerRedfish}, want: "power.address required; power.user required; power.certificate_sha256 required"},
		"script without":  {of: muster.PowerAddress{Kind: muster.PowerScript}, want: "power.address required"},

		"digits that are no address": {of: ipmi, change: func(a *muster.PowerAddress) { a.Address = "10.9.0.300" }, want: "power.address bad-value"},
		"a name with a blank":        {of: ipmi, change: func(a *muster.PowerAddress) { a.Address = "a b" }, want: "power.address bad-value"},
		"an option":                  {of: ipmi, change: func(a *muster.PowerAddress) { a.Address = "-oProxyCommand" }, want: "power.address bad-value"},
		"a URL":                      {of: redfish, change: func(a *muster.PowerAddress) { a.Address = "https://x@y/" }, want: "power.address bad-value"},
		"a zone that is none":        {of: ipmi, change: func(a *muster.PowerAddress) { a.Address = "fe80::1%a b" }, want: "power.address bad-value"},
		"a name too long":            {of: ipmi, change: func(a *muster.PowerAddress) { a.Address = strings.Repeat("a", 254) }, want: "power.address bad-value"},
		"port 0":                     {of: ipmi, change: func(a *muster.PowerAddress) { a.Address = "b:0" }, want: "power.address bad-value"},
		"port 70000":                 {of: redfish, change: func(a *muster.PowerAddress) { a.Address = "b:70000" }, want: "power.address bad-value"},
		"a port that is a word":      {of: wol, change: func(a *muster.PowerAddress) { a.Address = "b:discard" }, want: "power.address bad-value"},
		"a program here":             {of: script, change: func(a *muster.PowerAddress) { a.Address = "power" }, want: "power.address bad-value"},
		"a program in two lines":     {of: script, change: func(a *muster.PowerAddress) { a.Address = "/a\nb" }, want: "power.address bad-value"},

		"17 bytes of account":  {of: ipmi, change: func(a *muster.PowerAddress) { a.User = strings.Repeat("u", 17) }, want: "power.user too-large"},
		"65 bytes of account":  {of: redfish, change: func(a *muster.PowerAddress) { a.User = strings.Repeat("u", 65) }, want: "power.user too-large"},
		"an account in lines":  {of: redfish, change: func(a *muster.PowerAddress) { a.User = "a\nb" }, want: "power.user bad-value"},
		"an account of a card": {of: wol, change: func(a *muster.PowerAddress) { a.User = "admin" }, want: "power.user contradiction"},

		"nobody's certificate":     {of: redfish, change: func(a *muster.PowerAddress) { a.CertificateSHA256 = "" }, want: "power.certificate_sha256 required"},
		"a digest too short":       {of: redfish, change: func(a *muster.PowerAddress) { a.CertificateSHA256 = "abcd" }, want: "power.certificate_sha256 bad-value"},
		"capitals":                 {of: redfish, change: func(a *muster.PowerAddress) { a.CertificateSHA256 = strings.ToUpper(pin) }, want: "power.certificate_sha256 bad-value"},
		"a digest of another kind": {of: ipmi, change: func(a *muster.PowerAddress) { a.CertificateSHA256 = pin }, want: "power.certificate_sha256 contradiction"},
		"no PEM":                   {of: redfish, change: func(a *muster.PowerAddress) { a.Authority = "x" }, want: "power.authority bad-certificate"},
		"an empty certificate": {of: redfish, change: func(a *muster.PowerAddress) {
			a.Authority = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
		}, want: "power.authority bad-certificate"},
		"a key":                {of: redfish, change: func(a *muster.PowerAddress) { a.Authority = signer + key }, want: "power.authority private-key"},
		"a whole store":        {of: redfish, change: func(a *muster.PowerAddress) { a.Authority = strings.Repeat(signer, 500) }, want: "power.authority too-large"},
		"authority of another": {of: script, change: func(a *muster.PowerAddress) { a.Authority = signer }, want: "power.authority contradiction"},

		"a mode that is none":     {of: ipmi, change: func(a *muster.PowerAddress) { a.BootMode = "legacy" }, want: "power.boot_mode bad-value"},
		"a mode of wol":           {of: wol, change: func(a *muster.PowerAddress) { a.BootMode = muster.BootModeUEFI }, want: "power.boot_mode contradiction"},
		"a way that is none":      {of: redfish, change: func(a *muster.PowerAddress) { a.Boot = "disk" }, want: "power.boot bad-value"},
		"HTTP by IPMI":            {of: ipmi, change: func(a *muster.PowerAddress) { a.Boot = muster.BootHTTP }, want: "power.boot contradiction"},
		"HTTP of a BIOS":          {of: redfish, change: func(a *muster.PowerAddress) { a.Boot, a.BootMode = muster.BootHTTP, muster.BootModeBIOS }, want: "power.boot contradiction"},
		"a system elsewhere":      {of: redfish, change: func(a *muster.PowerAddress) { a.System = "//evil/x" }, want: "power.system bad-value"},
		"a system above":          {of: redfish, change: func(a *muster.PowerAddress) { a.System = "/redfish/../x" }, want: "power.system bad-value"},
		"a system of ipmi":        {of: ipmi, change: func(a *muster.PowerAddress) { a.System = "/redfish/v1/Systems/1" }, want: "power.system contradiction"},
		"an unknown quirk":        {of: ipmi, change: func(a *muster.PowerAddress) { a.Quirk = "dell" }, want: "power.quirk bad-value"},
		"a quirk of redfish":      {of: ipmi, change: func(a *muster.PowerAddress) { a.Quirk = "no-mode" }, want: "power.quirk bad-value"},
		"a quirk of wol":          {of: wol, change: func(a *muster.PowerAddress) { a.Quirk = "suite3" }, want: "power.quirk contradiction"},
		"an interface too long":   {of: wol, change: func(a *muster.PowerAddress) { a.Interface = strings.Repeat("e", 16) }, want: "power.interface bad-value"},
		"an interface and a host": {of: wol, change: func(a *muster.PowerAddress) { a.Interface, a.Address = "eno2", "10.0.0.255" }, want: "power.interface contradiction"},
		"an interface of ipmi":    {of: ipmi, change: func(a *muster.PowerAddress) { a.Interface = "eno2" }, want: "power.interface contradiction"},
		"what proves itself":      {of: redfish, change: func(a *muster.PowerAddress) { a.Proves = true }, want: "power.proves contradiction"},
		"many": {of: muster.PowerAddress{
			Kind: muster.PowerIPMI, Address: "a b:70000", User: strings.Repeat("u", 17), CertificateSHA256: "x", Authority: "x", BootMode: "x", Boot: "x",
			System: "x", Quirk: "x", Interface: "a/b", Proves: true,
		}, want: "power.address bad-value; power.user too-large; power.certificate_sha256 contradiction; power.authority contradiction; " +
			"power.certificate_sha256 bad-value; power.authority bad-certificate; power.boot_mode bad-value; power.boot bad-value; power.system contradiction; " +
			"power.system bad-value; power.quirk bad-value; power.interface contradiction; power.interface bad-value; power.proves contradiction"},
	} {
		a := c.of
		if c.change != nil {
			c.change(&a)
		}
		problems := a.Check()
		if got := strings.Join(errortest.Problems(problems), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		for _, p := range problems {
			if p.Message == "" || p.Hint == "" || strings.Contains(p.Message+p.Hint, key) {
				t.Errorf("%s: %+v says nothing, or too much", name, p)
			}
		}
	}
}

func TestPowerPasswordCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind           muster.PowerKind
		password, want string
	}{
		{muster.PowerIPMI, strings.Repeat("p", 20), ""},
		{muster.PowerIPMI, strings.Repeat("p", 21), "power_password too-large"},
		{muster.PowerRedfish, strings.Repeat("p", 21), ""},
		{muster.PowerScript, "any", ""},
		{muster.PowerWOL, "", ""},
		{muster.PowerWOL, "01:23:45:67:89:ab", ""},
		{muster.PowerWOL, "\x01\x02\x03\x04\x05\x06", ""},
		{muster.PowerWOL, "sesame1", "power_password bad-value"},
	} {
		problems := muster.PowerAddress{Kind: c.kind}.CheckPassword([]byte(c.password))
		if got := strings.Join(errortest.Problems(problems), "; "); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.kind, c.password, got, c.want)
		}
		for _, p := range problems {
			if strings.Contains(p.String(), c.password) {
				t.Errorf("a password is told: %s", p)
			}
		}
	}
}

// Everything that may be said of how a machine is switched is told when it changes.
func TestPowerDifferences(t *testing.T) {
	t.Parallel()
	signer, _ := authority(t)
	was := muster.Registration{Power: muster.PowerAddress{Kind: muster.PowerScript, Address: "/a"}}
	for want, change := range map[string]func(*muster.PowerAddress){
		"power script://ops@/a, before script:///a":          func(a *muster.PowerAddress) { a.User = "ops" },
		"power authority " + named(signer) + ", before none": func(a *muster.PowerAddress) { a.Authority = signer },
		"boot mode uefi, before none":                        func(a *muster.PowerAddress) { a.BootMode = muster.BootModeUEFI },
		"boot http, before none":                             func(a *muster.PowerAddress) { a.Boot = muster.BootHTTP },
		"power interface eno2, before none":                  func(a *muster.PowerAddress) { a.Interface = "eno2" },
		"power proves true, before false":                    func(a *muster.PowerAddress) { a.Proves = true },
	} {
		is := was
		change(&is.Power)
		if got := strings.Join(is.Differences(was), "; "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func named(authority string) string {
	return muster.PowerAddress{Authority: authority}.AuthorityName()
}

// What is printed is read again as what it was.
func TestPowerAddressRoundTrip(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]muster.PowerAddress{
		"wol":                                   {Kind: muster.PowerWOL},
		"wol://10.0.0.255:7":                    {Kind: muster.PowerWOL, Address: "10.0.0.255:7"},
		"ipmi://admin@[fd00::10]":               {Kind: muster.PowerIPMI, Address: "[fd00::10]", User: "admin"},
		"redfish://u@h/redfish/v1/Systems/1":    {Kind: muster.PowerRedfish, Address: "h", User: "u", System: "/redfish/v1/Systems/1"},
		"redfish://u@h/redfish/v1/Systems/a%25": {Kind: muster.PowerRedfish, Address: "h", User: "u", System: "/redfish/v1/Systems/a%"},
		"redfish://u@h:8443/redfish/v1/Systems/HGX_Baseboard_0": {Kind: muster.PowerRedfish, Address: "h:8443", User: "u", System: "/redfish/v1/Systems/HGX_Baseboard_0"},
		"script://ops@/etc/power%20on":                          {Kind: muster.PowerScript, Address: "/etc/power on", User: "ops"},
	} {
		p, err := muster.ParsePowerAddress(text)
		if err != nil || p.String() != text {
			t.Errorf("%s: %+v, printed %s, %v", text, p, p, err)
			continue
		}
		again, err := muster.ParsePowerAddress(p.String())
		if err != nil || again != p || p.String() != want.String() {
			t.Errorf("%s: %+v, then %+v, want %+v, %v", text, p, again, want, err)
		}
	}
	for _, system := range []string{"/redfish/v1/Chassis/1", "/redfish/v1/Systems/", "/redfish/v1/Systems/1/"} {
		a := muster.PowerAddress{Kind: muster.PowerRedfish, Address: "h", User: "u", System: system, CertificateSHA256: strings.Repeat("ab", 32)}
		if list := a.Check(); len(list) != 1 || list[0].Field != "power.system" {
			t.Errorf("%s: %+v", system, list)
		}
	}
}

// FuzzPowerAddressCheck: whatever is said of how a machine is switched, the check ends, and
// what passes is printed as what is read again.
func FuzzPowerAddressCheck(f *testing.F) {
	f.Add("ipmi", "10.0.0.1", "admin", "", "suite3", "", "uefi", "pxe", "", false)
	f.Add("redfish", "[fd00::1]:8443", "a", "/redfish/v1/Systems/1", "", "-----BEGIN CERTIFICATE-----\n", "", "http", "", false)
	f.Add("script", "/etc/power%20", "", "", "", "", "", "", "", true)
	f.Fuzz(func(t *testing.T, kind, address, user, system, quirk, authority, mode, boot, nic string, proves bool) {
		a := muster.PowerAddress{
			Kind: muster.PowerKind(kind), Address: address, User: user, System: system, Quirk: quirk, Authority: authority,
			BootMode: muster.BootMode(mode), Boot: muster.BootProtocol(boot), Interface: nic, Proves: proves,
		}
		problems := a.Check()
		for _, p := range problems {
			if p.Field == "" || p.Message == "" || p.Hint == "" {
				t.Fatalf("%+v tells nothing", p)
			}
		}
		if len(problems) > 0 {
			return
		}
		if !slices.Contains(muster.PowerKinds(), a.Kind) || strings.ContainsAny(a.Address, "\n\x00") || strings.ContainsAny(a.User, "\n\x00") {
			t.Fatalf("%+v passes", a)
		}
		again, err := muster.ParsePowerAddress(a.String())
		if a.HasController() || a.Kind == muster.PowerWOL && a.Address != "" {
			a.Address, _ = muster.CanonicalController(a.Kind, a.Address)
		}
		if err != nil || again != (muster.PowerAddress{Kind: a.Kind, Address: a.Address, User: a.User, System: a.System}) || again.String() != a.String() {
			t.Fatalf("%+v is printed %s and read %+v, %v", a, a, again, err)
		}
	})
}
