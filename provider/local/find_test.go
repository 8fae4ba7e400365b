package local

import "testing"

func TestInOtherInstance(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"9:name=systemd:/\n0::/user.slice\n":                                  false, // a process of the host with our IDs is suspicious
		"3:cpuset:/muster-aaa/local-01\n0::/muster-aaa/local-01/x\n":          false,
		"3:cpuset:/muster-bbb/local-01\n0::/muster-bbb/local-01/x\n":          true,
		"0::/muster.slice/muster-bbb.scope/muster-bbb/local-01\n":             true,
		"0::/muster.slice/muster-aaa.scope/local-01\n":                        false,
		"0::/muster-aaa/local-01/muster-bbb\n":                                false, // a tenant's own name
		"3:cpuset:/muster-bbb/local-01\n0::/muster-bbb/local-01/muster-aaa\n": true,
	} {
		if got := inOtherInstance(text, "muster-aaa"); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
