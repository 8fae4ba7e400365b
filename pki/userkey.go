package pki

import (
	"crypto/rsa"
	"crypto/subtle"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
	"golang.org/x/crypto/ssh"
)

const (
	minUserRSA     = 3072
	longestUserKey = 16 << 10
	mostPrincipals = 32
	longestName    = 256

	// Options of certificates and of authorized_keys lines.
	forceCommand    = "force-command"
	sourceAddress   = "source-address"
	permitPTY       = "permit-pty"
	permitForwards  = "permit-port-forwarding"
	optionAuthority = "cert-authority"
	optionNames     = "principals="
)

// ParseUserKey reads one line that is to become one of a user's record: a public key, an authority (with the
// options cert-authority and principals of authorized_keys), or a certificate. Key is the line in its plain form.
// Other options are refused: they would do things on nodes.
func ParseUserKey(line string, now time.Time) (muster.SSHKey, *muster.Error) {
	k, key, e := userKey(line)
	if e != nil {
		return k, e
	}
	if cert, ok := key.(*ssh.Certificate); ok {
		if e := checkOwn(cert, now); e != nil {
			return muster.SSHKey{}, e
		}
		return k, nil
	}
	if e := CheckUserKey(key); e != nil {
		return muster.SSHKey{}, e
	}
	return k, nil
}

// UserKey reads a line of a user's record, however it came there. False: it cannot be read.
func UserKey(line string) (muster.SSHKey, bool) {
	k, _, e := userKey(line)
	return k, e == nil
}

func userKey(line string) (k muster.SSHKey, key ssh.PublicKey, e *muster.Error) {
	bad := muster.Errorf(muster.EInvalid, "this is not one public SSH key").Because(muster.ReasonBadSSHKey).
		WithHint("give one line of a .pub file: 'ssh-ed25519 AAAA... name'")
	if len(line) > longestUserKey {
		return k, nil, bad
	}
	if strings.Contains(line, "PRIVATE KEY") {
		return k, nil, muster.Errorf(muster.EInvalid, "this is a private key").Because(muster.ReasonPrivateKey).WithHint("give the file that ends in .pub, and make a new key: others may have seen this one")
	}
	key, comment, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil || len(strings.TrimSpace(string(rest))) > 0 {
		return k, nil, bad
	}
	k = muster.SSHKey{Type: key.Type(), Comment: cleantext.Line(comment), Fingerprint: ssh.FingerprintSHA256(key), Key: Line(key)}
	if e := readOptions(&k, options); e != nil {
		return k, nil, e
	}
	if c, ok := key.(*ssh.Certificate); ok {
		if k.Authority {
			return k, nil, bad.WithHint("an authority is a key: give the .pub file that belongs to what 'ssh-keygen -s' signs with")
		}
		k.Fingerprint = ssh.FingerprintSHA256(c.Key)
		k.Certificate, k.Serial, k.Expires = keyID(c), c.Serial, ends(c)
		if list, limited := c.CriticalOptions[sourceAddress]; limited {
			k.Addresses = strings.Split(list, ",")
		}
	}
	if k.Authority {
		k.Key = authorityOption(k.Principals) + " " + k.Key
	}
	if k.Comment != "" {
		k.Key += " " + k.Comment
	}
	return k, key, nil
}

// readOptions reads those of an authority.
func readOptions(k *muster.SSHKey, options []string) *muster.Error {
	for _, o := range options {
		name, list, valued := strings.Cut(o, "=")
		list, quoted := strings.CutPrefix(list, `"`)
		list, closed := strings.CutSuffix(list, `"`)
		switch {
		case o == optionAuthority:
			k.Authority = true
		case name+"=" == optionNames && valued && quoted && closed:
			k.Principals = strings.Split(list, ",")
		default:
			return muster.Errorf(muster.EInvalid, "option %.40q of a key is not taken", name).Because(muster.ReasonBadSSHKey).
				WithHint("leave out what stands before 'ssh-', but for cert-authority and principals=\"...\" of an authority")
		}
	}
	if len(k.Principals) > 0 && !k.Authority {
		return muster.Errorf(muster.EInvalid, "only an authority has principals").Because(muster.ReasonContradiction).WithHint("say that the key is an authority, or leave the principals out")
	}
	return CheckPrincipals(k.Principals)
}

// CheckPrincipals refuses names that cannot be in an authorized_keys line.
func CheckPrincipals(names []string) *muster.Error {
	if len(names) > mostPrincipals {
		return muster.Errorf(muster.EInvalid, "an authority has at most %d principals here", mostPrincipals).Because(muster.ReasonTooMany).WithHint("name those that are yours")
	}
	for _, name := range names {
		if name == "" || len(name) > longestName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`,"\*?!`, r) }) {
			return muster.Errorf(muster.EInvalid, "%.64q is not the name of a principal", name).Because(muster.ReasonBadValue).WithHint("write it as it is in the certificate ('ssh-keygen -L -f FILE'), without patterns")
		}
	}
	return nil
}

// WithPrincipals is an authority with others.
func WithPrincipals(k muster.SSHKey, principals []string) muster.SSHKey {
	_, key, _ := strings.Cut(k.Key, " ")
	k.Key, k.Principals = authorityOption(principals)+" "+key, principals
	return k
}

func authorityOption(principals []string) string {
	o := optionAuthority
	if len(principals) > 0 {
		o += "," + optionNames + `"` + strings.Join(principals, ",") + `"`
	}
	return o
}

// checkOwn refuses what a certificate that is itself on record cannot have.
func checkOwn(c *ssh.Certificate, now time.Time) *muster.Error {
	refuse := func(text, cure string) *muster.Error {
		return muster.Errorf(muster.EInvalid, "the certificate cannot be used: %s", text).Because(muster.ReasonBadSSHKey).WithHint("%s", cure)
	}
	if text := checkCertificate(c); text != "" {
		return refuse(text, "have another one made: ssh-keygen -s CA -I ID -n USER KEY.pub")
	}
	if _, forced := c.CriticalOptions[forceCommand]; forced {
		return refuse("it allows one command only (force-command), and nothing here would hold a session to that", "have one made without -O force-command")
	}
	for name := range c.CriticalOptions {
		if name != sourceAddress {
			return refuse("its critical option "+cleantext.Line(cleantext.Cut(name, 40))+" is not known here", "have one made without it")
		}
	}
	if list, limited := c.CriticalOptions[sourceAddress]; limited && !areAddresses(list) {
		return refuse("its source-address is no list of addresses and networks", "have one made with -O source-address=192.0.2.0/24")
	}
	if !valid(c, c.ValidPrincipals, now) {
		return refuse("its time has not come or is over, or it is damaged", "see 'ssh-keygen -L -f FILE', and have another one made")
	}
	return nil
}

// areAddresses reports whether a list is one of addresses and networks, which may stand in an authorized_keys line.
func areAddresses(list string) bool {
	for a := range strings.SplitSeq(list, ",") {
		_, err := netip.ParsePrefix(a)
		if err != nil {
			_, err = netip.ParseAddr(a)
		}
		if err != nil || strings.Contains(a, "%") {
			return false
		}
	}
	return true
}

// keyID is a certificate's, fit for records.
func keyID(c *ssh.Certificate) string { return cleantext.Line(cleantext.Cut(c.KeyId, longestName)) }

// checkCertificate says what is wrong with a certificate, whoever signed it and whenever it is good; "": nothing.
func checkCertificate(c *ssh.Certificate) string {
	switch {
	case c.CertType != ssh.UserCert:
		return "it is for a host"
	case CheckUserKey(c.Key) != nil:
		return "its key is too weak"
	case CheckUserKey(c.SignatureKey) != nil || c.Signature == nil || c.Signature.Format == ssh.KeyAlgoRSA: // SHA-1
		return "its signature is too weak"
	case len(c.ValidPrincipals) == 0: // OpenSSH lets such in nowhere
		return "it names no principal"
	case c.ValidAfter >= c.ValidBefore:
		return "it is never valid"
	}
	return ""
}

// lastTime is the latest end of a certificate that is a time; what is later never ends.
const lastTime = 1 << 40

func ends(c *ssh.Certificate) time.Time {
	if c.ValidBefore >= lastTime {
		return time.Time{}
	}
	return time.Unix(int64(c.ValidBefore), 0)
}

// CheckUserKey refuses keys that are too weak, and certificates.
func CheckUserKey(key ssh.PublicKey) *muster.Error {
	const cure = "make another one: ssh-keygen -t ed25519"
	refuse := func(format string, args ...any) *muster.Error {
		return muster.Errorf(muster.EInvalid, format, args...).Because(muster.ReasonBadSSHKey).WithHint(cure)
	}
	if key == nil {
		return refuse("there is no key")
	}
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		return nil
	case ssh.KeyAlgoRSA:
		if c, ok := key.(ssh.CryptoPublicKey); ok {
			if r, ok := c.CryptoPublicKey().(*rsa.PublicKey); ok && r.N.BitLen() >= minUserRSA {
				return nil
			} else if ok {
				return refuse("an RSA key of %d bits is too weak; %d are needed", r.N.BitLen(), minUserRSA)
			}
		}
	}
	return refuse("keys of type %s are not taken; use Ed25519, ECDSA, RSA of %d bits or more, or a FIDO2 key", key.Type(), minUserRSA)
}

// Admit finds by which of a user's keys what a client offers lets in now. False: by none. That its
// holder has the private key, and from where it comes, is for the door to check.
func Admit(keys []muster.SSHKey, offered ssh.PublicKey, now time.Time) (found muster.DoorKey, ok bool) {
	cert, certified := offered.(*ssh.Certificate)
	signer := offered
	if certified {
		if checkCertificate(cert) != "" {
			return found, false
		}
		signer = cert.SignatureKey
	}
	if signer == nil {
		return found, false
	}
	fingerprint := ssh.FingerprintSHA256(signer)
	for _, k := range keys {
		if k.Expired(now) {
			continue
		}
		var by *ssh.Certificate
		switch {
		case k.Authority:
			if !certified || !same(k.Fingerprint, fingerprint) || !valid(cert, k.Principals, now) {
				continue
			}
			by = cert
		case k.IsCertificate(): // it, or the key in it, which lets in as it does
			own := certificateIn(k.Key)
			if own == nil || !same(Line(own), Line(offered)) && !same(Line(own.Key), Line(offered)) || !valid(own, own.ValidPrincipals, now) {
				continue
			}
			by = own
		case !same(k.Fingerprint, fingerprint) || certified:
			continue
		}
		found, ok = muster.DoorKey{Fingerprint: k.Fingerprint}, true
		if by != nil {
			found.Certificate = doorCertificate(by)
		}
	}
	return found, ok
}

// LetsIn reports whether the key with a fingerprint is one of a user's and lets in still; EUnauth: it does not.
func LetsIn(keys []muster.SSHKey, user, fingerprint string, now time.Time) error {
	known := false
	for _, k := range keys {
		known = known || same(k.Fingerprint, fingerprint) && !k.Expired(now)
	}
	if !known {
		return NoUserKey(user)
	}
	return nil
}

// NoUserKey is the error of a key that does not let in.
func NoUserKey(user string) error {
	return muster.Errorf(muster.EUnauth, "this key does not speak for %.40q any more", user).Because(muster.ReasonNoSuchKey).WithHint("see 'muster key list'")
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func certificateIn(line string) *ssh.Certificate {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return nil
	}
	c, _ := key.(*ssh.Certificate)
	return c
}

// valid reports whether a certificate is what its authority signed, good now, and for one of these
// principals.
func valid(c *ssh.Certificate, principals []string, now time.Time) bool {
	check := ssh.CertChecker{Clock: func() time.Time { return now }, SupportedCriticalOptions: []string{sourceAddress, forceCommand}}
	for _, p := range principals {
		if slices.Contains(c.ValidPrincipals, p) {
			return check.CheckCert(p, c) == nil
		}
	}
	return false
}

func doorCertificate(c *ssh.Certificate) *muster.DoorCertificate {
	has := func(options map[string]string, name string) bool { _, ok := options[name]; return ok }
	return &muster.DoorCertificate{
		ID: keyID(c), Serial: c.Serial, Ends: ends(c),
		Addresses: c.CriticalOptions[sourceAddress], Limited: has(c.CriticalOptions, sourceAddress),
		Command:  has(c.CriticalOptions, forceCommand),
		Terminal: has(c.Extensions, permitPTY), Forwards: has(c.Extensions, permitForwards),
	}
}

// AuthorizedKey is the line by which a node's own sshd lets a user's key in: an authority as one, and of a
// certificate the key in it, as long as the certificate lets in and from where.
func AuthorizedKey(k muster.SSHKey) string {
	var options []string
	if !k.Expires.IsZero() {
		options = append(options, k.Expires.UTC().Format(`expiry-time="20060102150405Z"`))
	}
	line := k.Key
	if c := certificateIn(k.Key); c != nil {
		line = Line(c.Key)
		if k.Comment != "" {
			line += " " + k.Comment
		}
		if len(k.Addresses) > 0 {
			options = append(options, `from="`+strings.Join(k.Addresses, ",")+`"`)
		}
		options = append(options, "restrict")
		for _, what := range []string{"pty", "port-forwarding", "agent-forwarding", "X11-forwarding", "user-rc"} {
			if _, permitted := c.Extensions["permit-"+what]; permitted {
				options = append(options, what)
			}
		}
	}
	switch {
	case len(options) == 0:
		return line
	case k.Authority: // its own options go on
		return strings.Join(options, ",") + "," + line
	}
	return strings.Join(options, ",") + " " + line
}
