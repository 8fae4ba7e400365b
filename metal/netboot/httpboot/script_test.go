package httpboot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func example() Boot {
	return Boot{
		Number: "b1a2c3", Server: "https://10.0.0.1:7700", CA: strings.Repeat("0123456789abcdef", 4),
		Args: []string{"console=ttyS0,115200", "ip=[fd00::1]:eth0", "quiet"},
	}
}

// TestScriptGolden: MUSTER_UPDATE=1 writes the files anew.
func TestScriptGolden(t *testing.T) {
	t.Parallel()
	plain := example()
	plain.Args = nil
	for name, b := range map[string]Boot{"plain": plain, "arguments": example()} {
		got, err := Script(b, "http://10.0.0.1:7780/")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".ipxe")
		if os.Getenv("MUSTER_UPDATE") != "" {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %v\n%s", path, err, got)
		}
	}
}

// TestNothingStrangeInAScript: what iPXE or a shell could take for its own is
// refused, and all of it named at once.
func TestNothingStrangeInAScript(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "a b", "${net0/mac}", "a\nshell", "a||shell", "a&&b", `a"b`, "a'b", "a#b", `a\b`, "a;b", "-a", "ä", "a\x00"} {
		b := example()
		b.Args = []string{bad}
		if got, err := Script(b, "http://10.0.0.1/"); err == nil {
			t.Errorf("argument %q:\n%s", bad, got)
		}
		b = example()
		b.Number = bad
		if bad != "" {
			b.Server = "https://x" + bad
		} else {
			b.Server = ""
		}
		b.CA = bad
		_, err := Script(b, "http://10.0.0.1"+bad)
		if err == nil {
			t.Fatalf("%q is taken", bad)
		}
		for _, field := range []string{"number:", "ca:", "base:"} {
			if !strings.Contains(err.Error(), field) {
				t.Errorf("%q: %s is not named in %v", bad, field, err)
			}
		}
	}
}

func FuzzScript(f *testing.F) {
	f.Add("console=ttyS0", "b1a2", "https://10.0.0.1:7700")
	f.Add("${x}", "b1a2\n", "https://x y")
	f.Fuzz(func(t *testing.T, arg, num, server string) {
		b := example()
		b.Args, b.Number, b.Server = []string{arg}, num, server
		got, err := Script(b, "http://10.0.0.1:7780/")
		if err != nil {
			return
		}
		plain, _ := Script(example(), "http://10.0.0.1:7780/")
		if strings.Count(string(got), "\n") != strings.Count(string(plain), "\n") || strings.Count(string(got), "$") != strings.Count(string(plain), "$") ||
			strings.Count(string(got), "||") != strings.Count(string(plain), "||") {
			t.Fatalf("something got in:\n%s", got)
		}
	})
}
