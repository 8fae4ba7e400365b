package pki

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"golang.org/x/crypto/ssh"
)

func testSigner(t testing.TB) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// userCertificate is one of a new key, good for an hour around now, as change makes it.
func userCertificate(t testing.TB, ca ssh.Signer, now time.Time, change func(*ssh.Certificate)) *ssh.Certificate {
	t.Helper()
	c := &ssh.Certificate{
		Key: testSigner(t).PublicKey(), Serial: 7, CertType: ssh.UserCert, KeyId: "alice@laptop", ValidPrincipals: []string{"alice"},
		ValidAfter: uint64(now.Add(-time.Hour).Unix()), ValidBefore: uint64(now.Add(time.Hour).Unix()),
		Permissions: ssh.Permissions{Extensions: map[string]string{"permit-pty": "", "permit-port-forwarding": ""}},
	}
	if change != nil {
		change(c)
	}
	if err := c.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	return c
}

func recorded(t testing.TB, line string, now time.Time) muster.SSHKey {
	t.Helper()
	k, e := ParseUserKey(line, now)
	if e != nil {
		t.Fatal(e)
	}
	again, ok := UserKey(k.Key)
	if !ok || again.Key != k.Key || again.Fingerprint != k.Fingerprint || again.Authority != k.Authority || strings.Join(again.Principals, ",") != strings.Join(k.Principals, ",") {
		t.Fatalf("%+v comes back as %+v", k, again)
	}
	return k
}

// Which certificates an authority on record lets in.
func TestCertificatesOfAnAuthority(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_900_000_000, 0)
	ca, other := testSigner(t), testSigner(t)
	authority := recorded(t, `cert-authority,principals="alice,alice@example.org" `+Line(ca.PublicKey())+" our authority", now)
	if !authority.Authority || authority.Fingerprint != ssh.FingerprintSHA256(ca.PublicKey()) || authority.Comment != "our authority" {
		t.Errorf("%+v", authority)
	}
	strong, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		t.Fatal(err)
	}
	rsaCA, err := ssh.NewSignerFromKey(strong)
	if err != nil {
		t.Fatal(err)
	}
	old, err := ssh.NewSignerWithAlgorithms(rsaCA.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSA}) // SHA-1
	if err != nil {
		t.Fatal(err)
	}
	keys := []muster.SSHKey{authority, recorded(t, `cert-authority,principals="alice" `+Line(rsaCA.PublicKey()), now)}
	for name, c := range map[string]struct {
		by     ssh.Signer
		change func(*ssh.Certificate)
		in     bool
	}{
		"as it should be":    {ca, nil, true},
		"RSA authority":      {rsaCA, nil, true},
		"another principal":  {ca, func(c *ssh.Certificate) { c.ValidPrincipals = []string{"x", "alice@example.org"} }, true},
		"without an end":     {ca, func(c *ssh.Certificate) { c.ValidBefore = ssh.CertTimeInfinity }, true},
		"source-address":     {ca, func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"source-address": "192.0.2.0/24"} }, true},
		"force-command":      {ca, func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"force-command": "true"} }, true}, // the door says why it is refused
		"of another":         {other, nil, false},
		"nobody's principal": {ca, func(c *ssh.Certificate) { c.ValidPrincipals = []string{"bob"} }, false},
		"no principal":       {ca, func(c *ssh.Certificate) { c.ValidPrincipals = nil }, false},
		"expired":            {ca, func(c *ssh.Certificate) { c.ValidBefore = uint64(now.Unix()) }, false},
		"not yet":            {ca, func(c *ssh.Certificate) { c.ValidAfter = uint64(now.Add(time.Minute).Unix()) }, false},
		"of a host":          {ca, func(c *ssh.Certificate) { c.CertType = ssh.HostCert }, false},
		"an unknown option":  {ca, func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"verify-required": ""} }, false},
		"SHA-1":              {old, nil, false},
		"a weak key": {ca, func(c *ssh.Certificate) {
			weak, _ := rsa.GenerateKey(rand.Reader, 2048)
			c.Key, _ = ssh.NewPublicKey(&weak.PublicKey)
		}, false},
	} {
		cert := userCertificate(t, c.by, now, c.change)
		by, in := Admit(keys, cert, now)
		if in != c.in {
			t.Errorf("%s: let in: %v", name, in)
		}
		if in && (by.Fingerprint != ssh.FingerprintSHA256(c.by.PublicKey()) || by.Certificate == nil || by.Certificate.ID != "alice@laptop" || by.Certificate.Serial != 7 ||
			by.Certificate.Command != (name == "force-command") || by.Certificate.Limited != (name == "source-address")) {
			t.Errorf("%s: %+v, %+v", name, by, by.Certificate)
		}
		if _, in := Admit(keys, cert.Key, now); in {
			t.Errorf("%s: the key in it lets in", name)
		}
	}
	if _, in := Admit(keys, ca.PublicKey(), now); in {
		t.Error("the authority's own key lets in")
	}
	damaged := userCertificate(t, ca, now, nil)
	damaged.ValidPrincipals = []string{"alice", "root"}
	if _, in := Admit(keys, damaged, now); in {
		t.Error("a certificate that was changed lets in")
	}
	authority.Expires = now
	if _, in := Admit([]muster.SSHKey{authority}, userCertificate(t, ca, now, nil), now); in {
		t.Error("an authority that ended lets in")
	}
	plain := recorded(t, Line(ca.PublicKey()), now)
	if _, in := Admit([]muster.SSHKey{plain}, userCertificate(t, ca, now, nil), now); in {
		t.Error("a key is taken for an authority")
	}
}

// A certificate that is itself on record lets in, with the key in it, as long as it is good.
func TestACertificateOnRecord(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_900_000_000, 0)
	ca := testSigner(t)
	cert := userCertificate(t, ca, now, func(c *ssh.Certificate) {
		c.CriticalOptions = map[string]string{"source-address": "192.0.2.0/24,2001:db8::1"}
		c.Extensions = map[string]string{"permit-pty": ""}
	})
	k := recorded(t, Line(cert)+" laptop", now)
	if k.Fingerprint != ssh.FingerprintSHA256(cert.Key) || k.Certificate != "alice@laptop" || k.Serial != 7 || !k.Expires.Equal(now.Add(time.Hour)) {
		t.Errorf("%+v", k)
	}
	list := []muster.SSHKey{k}
	for _, offered := range []ssh.PublicKey{cert, cert.Key} {
		by, in := Admit(list, offered, now)
		if !in || by.Fingerprint != k.Fingerprint || by.Certificate == nil || !by.Certificate.Limited || by.Certificate.Addresses != "192.0.2.0/24,2001:db8::1" || by.Certificate.Forwards || !by.Certificate.Terminal {
			t.Errorf("%s: %v, %+v", offered.Type(), in, by)
		}
		if _, in := Admit(list, offered, now.Add(time.Hour)); in {
			t.Errorf("%s lets in after its end", offered.Type())
		}
	}
	again := *cert
	if err := again.SignCert(rand.Reader, testSigner(t)); err != nil {
		t.Fatal(err)
	}
	if _, in := Admit(list, &again, now); in {
		t.Error("another certificate of that key lets in")
	}
	line := AuthorizedKey(k)
	if want := `expiry-time="` + now.Add(time.Hour).UTC().Format("20060102150405Z") + `",from="192.0.2.0/24,2001:db8::1",restrict,pty ` + Line(cert.Key) + " laptop"; line != want {
		t.Errorf("nodes get %s, want %s", line, want)
	}
	a := recorded(t, `cert-authority,principals="alice" `+Line(ca.PublicKey()), now)
	if line := AuthorizedKey(a); line != a.Key {
		t.Errorf("nodes get %s", line)
	}
	a.Expires = now
	if line, want := AuthorizedKey(a), `expiry-time="`+now.UTC().Format("20060102150405Z")+`",`+a.Key; line != want {
		t.Errorf("nodes get %s, want %s", line, want)
	}
}

// What is refused is refused with a reason and a cure.
func TestUserKeysThatAreRefused(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_900_000_000, 0)
	ca := testSigner(t)
	pub := Line(ca.PublicKey())
	with := func(change func(*ssh.Certificate)) string { return Line(userCertificate(t, ca, now, change)) }
	option := func(name, value string) string {
		return with(func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{name: value} })
	}
	for line, want := range map[string]string{
		"ssh-ed25519 AAAA":                                                                 "not one public SSH key",
		pub + "\n" + pub:                                                                   "not one public SSH key",
		`command="sh" ` + pub:                                                              `option "command"`,
		`principals="alice" ` + pub:                                                        "only an authority",
		`cert-authority,principals="a*" ` + pub:                                            "not the name of a principal",
		`cert-authority,principals="" ` + pub:                                              "not the name of a principal",
		`cert-authority,from="10.0.0.0/8" ` + pub:                                          `option "from"`,
		`cert-authority ` + with(nil):                                                      "not one public SSH key",
		option("force-command", "true"):                                                    "one command only (force-command)",
		option("verify-required", ""):                                                      "verify-required",
		option("source-address", `192.0.2.1",command="`):                                   "source-address is no list",
		option("source-address", ""):                                                       "source-address is no list",
		with(func(c *ssh.Certificate) { c.ValidPrincipals = nil }):                         "names no principal",
		with(func(c *ssh.Certificate) { c.ValidBefore = uint64(now.Unix()) }):              "its time has not come or is over",
		with(func(c *ssh.Certificate) { c.ValidAfter = uint64(now.Unix()) + 9 }):           "its time has not come or is over",
		with(func(c *ssh.Certificate) { c.CertType = ssh.HostCert }):                       "it is for a host",
		"-----BEGIN OPENSSH PRIVATE KEY-----":                                              "private key",
		"ssh-ed25519 " + strings.Repeat("A", longestUserKey):                               "not one public SSH key",
		`cert-authority,principals="` + strings.Repeat("a,", mostPrincipals) + `a" ` + pub: "at most 32 principals",
	} {
		_, e := ParseUserKey(line, now)
		if e == nil || !strings.Contains(e.Error(), want) || e.Hint == "" {
			t.Errorf("%.60s: %v, want %q", line, e, want)
		}
	}
}

// Whatever a user's record or a client says, it is read without harm, and what nodes get is one line with
// known options.
func FuzzUserKey(f *testing.F) {
	now := time.Unix(1_900_000_000, 0)
	ca := testSigner(f)
	pub := Line(ca.PublicKey())
	f.Add(pub + " name")
	f.Add(`cert-authority,principals="alice,bob" ` + pub)
	f.Add(Line(userCertificate(f, ca, now, func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"source-address": "192.0.2.0/24"} })))
	f.Add(Line(userCertificate(f, ca, now, func(c *ssh.Certificate) { c.KeyId = "\"\n\x1b[31m" })))
	f.Fuzz(func(t *testing.T, line string) {
		k, e := ParseUserKey(line, now)
		if e != nil {
			return
		}
		again, ok := UserKey(k.Key)
		if !ok || again.Fingerprint != k.Fingerprint || again.Authority != k.Authority {
			t.Fatalf("%q comes back as %+v", k.Key, again)
		}
		text := AuthorizedKey(k)
		if strings.ContainsAny(text, "\n\r\x00") {
			t.Fatalf("more than one line: %q", text)
		}
		_, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(text))
		if err != nil || len(rest) > 0 {
			t.Fatalf("nodes cannot read %q: %v", text, err)
		}
		for _, o := range options {
			name, _, _ := strings.Cut(o, "=")
			switch name {
			case "cert-authority", "principals", "expiry-time", "from", "restrict", "pty", "port-forwarding", "agent-forwarding", "X11-forwarding", "user-rc":
			default:
				t.Fatalf("nodes get option %q", o)
			}
		}
		if strings.ContainsAny(k.Certificate+k.Comment, "\n\r\x1b") {
			t.Fatalf("%+v", k)
		}
	})
}

// Whatever a client offers in place of a certificate, only what the authority signed lets in.
func FuzzAdmit(f *testing.F) {
	now := time.Unix(1_900_000_000, 0)
	ca := testSigner(f)
	good := userCertificate(f, ca, now, nil)
	keys := []muster.SSHKey{recorded(f, `cert-authority,principals="alice" `+Line(ca.PublicKey()), now)}
	f.Add(good.Marshal())
	f.Add(userCertificate(f, testSigner(f), now, nil).Marshal())
	f.Fuzz(func(t *testing.T, blob []byte) {
		offered, err := ssh.ParsePublicKey(blob)
		if err != nil {
			return
		}
		if _, in := Admit(keys, offered, now); in && Line(offered) != Line(good) {
			t.Fatalf("let in: %s", Line(offered))
		}
	})
}
