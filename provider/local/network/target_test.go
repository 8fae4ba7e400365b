package network

import (
	"testing"
)

func FuzzSplitTarget(f *testing.F) {
	for _, s := range []string{"example.org:443", "[::1]:80", "a", ":", "x:99999", "[", "a:b:c", "A.b.:80"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, target string, needPort bool) {
		host, port, err := splitTarget(target, needPort)
		if err == nil && (host == "" || port < 1 || port > 65535) {
			t.Errorf("%q became %q %d", target, host, port)
		}
	})
}

func TestIndexOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"b0": 0, "b12": 12, "b": -1, "bx": -1, "b1x": -1, "m1": -1, "b99999999": -1} {
		got, ok := indexOf(name, "b")
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%s: %d %v", name, got, ok)
		}
	}
}

func TestUplinkAddresses(t *testing.T) {
	t.Parallel()
	h, r := uplinkAddresses("muster-abc")
	if h.Masked() != r.Masked() || h.Addr() == r.Addr() || len(uplinkName("muster-abc")) > 15 {
		t.Error(h, r)
	}
}
