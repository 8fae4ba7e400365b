package pki

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		for prefix, make := range map[string]func() (string, [32]byte){UserPrefix: NewToken, JoinPrefix: NewJoinToken} {
			secret, hash := make()
			if seen[secret] || !strings.HasPrefix(secret, prefix) {
				t.Fatalf("token %q", secret)
			}
			seen[secret] = true
			p, h, err := ParseToken(secret)
			if err != nil || p != prefix || !EqualHash(h, hash) || !EqualHash(hash, HashToken(secret)) {
				t.Errorf("parsed as %q, %v", p, err)
			}
			if EqualHash(hash, HashToken(secret+"x")) {
				t.Error("another secret has the same hash")
			}
		}
	}
	good, _ := NewToken()
	for _, bad := range []string{"", "mst_", good + "x", good[:len(good)-1], " " + good, good + "\n", strings.Replace(good, "mst_", "MST_", 1), "mst_" + strings.Repeat("=", 43), "mst_" + strings.Repeat("A", 42) + "B"} {
		_, _, err := ParseToken(bad)
		wantCode(t, err, muster.EUnauth)
		if len(bad) > 10 && strings.Contains(err.Error(), strings.TrimSpace(bad)[4:10]) {
			t.Errorf("the error quotes the token: %v", err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	for _, make := range []func() (string, [32]byte){NewToken, NewJoinToken} {
		secret, _ := make()
		f.Add(secret)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, h, err := ParseToken(s); err == nil && (h != HashToken(s) || !strings.HasPrefix(s, p) || len(s) != 47) {
			t.Errorf("%q is a token", s)
		}
	})
}
