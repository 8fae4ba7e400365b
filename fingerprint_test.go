package muster

import (
	"encoding/pem"
	"strings"
	"testing"
)

func TestCanonicalSHA256(t *testing.T) {
	t.Parallel()
	const want = "9addb34aa3f3ba7e84b74bb5a4ad5b0ac05e57d0a2ad3f4ac4a2ad3f4ac4a2ff"
	var colons, blanks []string
	for i := 0; i < len(want); i += 2 {
		colons, blanks = append(colons, strings.ToUpper(want[i:i+2])), append(blanks, want[i:i+2])
	}
	long := strings.Join(colons, ":")
	for _, s := range []string{
		want, " " + want + "\n", strings.ToUpper(want), "sha256:" + want, "SHA256:" + want, "SHA-256: " + long, long, "sha256:" + long,
		"SHA256 Fingerprint=" + long, "sha256 Fingerprint=" + long, "SHA-256 fingerprint: " + long, "Fingerprint " + long,
		strings.Join(blanks, " "), strings.Join(blanks, "-"), want + "  -", want + " *bmc.der", "sha256 = " + want,
	} {
		if got := CanonicalSHA256(s); got != want {
			t.Errorf("%q: %q", s, got)
		}
	}
	for _, s := range []string{want[1:], want + "0", "md5:" + want, "SHA1 Fingerprint=" + long[:59], "", "zz" + want[2:]} {
		if got := CanonicalSHA256(s); sha256Hex.MatchString(got) {
			t.Errorf("%q is taken: %q", s, got)
		}
	}
	// What openssl s_client prints has more than the certificate.
	text := "depth=0 CN = bmc\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("abc")})) + "---\nServer certificate\n"
	if got := CanonicalSHA256(text); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Error(got)
	}
}

func FuzzCanonicalSHA256(f *testing.F) {
	f.Add("SHA256 Fingerprint=9A:DD")
	f.Add("-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n")
	f.Fuzz(func(t *testing.T, s string) {
		if once := CanonicalSHA256(s); CanonicalSHA256(once) != once {
			t.Errorf("%q: %q", s, once)
		}
	})
}
