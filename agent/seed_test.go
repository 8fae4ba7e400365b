package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent"
)

func TestParseSeed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	good := s.seed()
	b, err := json.Marshal(good)
	check(t, err)
	if got, err := agent.ParseBootstrap(b); err != nil || got.Token != good.Token || got.Server != good.Server {
		t.Fatalf("%+v, %v", got, err)
	}
	newer := strings.Replace(string(b), "{", `{"later":[1,2],`, 1)
	if _, err := agent.ParseBootstrap([]byte(newer)); err != nil {
		t.Errorf("a newer provider's field: %v", err)
	}
	change := map[string]func(map[string]any){
		"no server":      func(m map[string]any) { delete(m, "server") },
		"plain http":     func(m map[string]any) { m["server"] = "http://10.0.0.1:1" },
		"a password":     func(m map[string]any) { m["server"] = "https://a:b@10.0.0.1" },
		"a path":         func(m map[string]any) { m["server"] = "https://10.0.0.1/x" },
		"no authority":   func(m map[string]any) { m["ca"] = "" },
		"no machine":     func(m map[string]any) { m["machine"] = "" },
		"attempt zero":   func(m map[string]any) { m["attempt"] = 0 },
		"attempt text":   func(m map[string]any) { m["attempt"] = "1" },
		"attempt broken": func(m map[string]any) { m["attempt"] = 1.5 },
		"huge token":     func(m map[string]any) { m["token"] = strings.Repeat("x", 2000) },
		"huge":           func(m map[string]any) { m["more"] = strings.Repeat("x", 100_000) },
	}
	for name, f := range change {
		m := map[string]any{}
		check(t, json.Unmarshal(b, &m))
		f(m)
		bad, err := json.Marshal(m)
		check(t, err)
		_, err = agent.ParseBootstrap(bad)
		if muster.CodeOf(err) != muster.EInvalid || strings.Contains(err.Error(), "mjt_") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{"", "null", "[]", "{}", string(b) + "{}", string(b)[:len(b)-1]} {
		if _, err := agent.ParseBootstrap([]byte(bad)); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

func TestForgetToken(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	path := filepath.Join(t.TempDir(), "seed.json")
	b, err := json.Marshal(s.seed())
	check(t, err)
	check(t, os.WriteFile(path, b, 0o400))
	for range 2 {
		check(t, agent.ForgetToken(path))
		after, err := os.ReadFile(path)
		check(t, err)
		if strings.Contains(string(after), "mjt_secret") {
			t.Fatal("the token is still there")
		}
		seed, err := agent.ReadBootstrap(path)
		check(t, err)
		if seed.Server != s.seed().Server || seed.Token != "" || seed.Attempt != 1 {
			t.Errorf("%+v", seed)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o400 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if _, err := agent.ReadBootstrap(path + "x"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("no file: %v", err)
	}
}

func FuzzParseSeed(f *testing.F) {
	f.Add([]byte(`{"server":"https://10.90.0.1:7700","ca":"","token":"mjt_x","machine":"m","attempt":1}`))
	f.Add([]byte(`{"server":"https://[::1]:7700","attempt":-1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := agent.ParseBootstrap(b)
		if err != nil {
			if muster.CodeOf(err) != muster.EInvalid {
				t.Fatalf("%v", err)
			}
			return
		}
		if !strings.HasPrefix(s.Server, "https://") || s.Machine == "" || s.Attempt < 1 {
			t.Fatalf("%+v", s)
		}
	})
}
