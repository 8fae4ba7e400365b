package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/spf13/pflag"
	"pgregory.net/rapid"
)

func serveSet() (*serveFlags, *pflag.FlagSet) {
	f, set := &serveFlags{}, pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.add(set)
	(&configFile{}).add(set)
	return f, set
}

// A file says what the command line does not, and lists as a whole.
func TestApplyConfig(t *testing.T) {
	t.Parallel()
	f, set := serveSet()
	if err := set.Parse([]string{"--fake", "3", "--local", "2"}); err != nil {
		t.Fatal(err)
	}
	problems := applyConfig([]byte("fake: 9\nlocal: [4, '8,class=big']\nmetal_interface: eno2\nmetal_range: [10.0.0.10-10.0.0.20, 10.0.0.30-10.0.0.40]\noversubscribe: true\nrack_power_on_rate: 0.5\nlisten:\n"), set)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if f.c.Fake != 3 || len(f.slices) != 1 || f.bare.net != "eno2" || len(f.bare.ranges) != 2 || !f.c.Oversubscribe || f.bare.rate != 0.5 || f.c.Listen != "" {
		t.Errorf("%+v", f)
	}
	f, set = serveSet()
	if problems := applyConfig([]byte("local: [4, '8,class=big']"), set); len(problems) > 0 || len(f.slices) != 2 || f.slices[1] != "8,class=big" {
		t.Errorf("%q %v", f.slices, problems)
	}
	for text, want := range map[string]string{
		"":                       "",
		"# nothing":              "",
		"metal-net: eno2":        "metal-net unknown-field line 1, column 1",
		"config: x":              "config unknown-field line 1, column 1",
		"fake: [1]":              "fake bad-value line 1, column 7",
		"oversubscribe: perhaps": "oversubscribe bad-value line 1, column 16",
		"max_walltime: tomorrow": "max_walltime bad-value line 1, column 15",
		"fake: 1\nfake: 2":       "fake given-twice line 2, column 1",
		"listen: {a: b}":         "listen wrong-type line 1, column 9",
		"- fake":                 "wrong-type line 1, column 1",
	} {
		_, set := serveSet()
		if got := strings.Join(errortest.Problems(applyConfig([]byte(text), set)), "; "); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// What is printed is read as it was, whatever is set.
func TestPrintedConfigProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		_, set := serveSet()
		set.VisitAll(func(f *pflag.Flag) {
			if f.Hidden || strings.Contains(f.Name, "config") || rapid.IntRange(0, 2).Draw(t, "given") > 0 {
				return
			}
			value := map[string]func() string{
				"bool":     func() string { return rapid.SampledFrom([]string{"true", "false"}).Draw(t, f.Name) },
				"int":      func() string { return rapid.SampledFrom([]string{"0", "7", "4096"}).Draw(t, f.Name) },
				"float64":  func() string { return rapid.SampledFrom([]string{"0.25", "3"}).Draw(t, f.Name) },
				"duration": func() string { return rapid.SampledFrom([]string{"72h", "90s"}).Draw(t, f.Name) },
			}[f.Value.Type()]
			if value == nil {
				value = func() string {
					return rapid.SampledFrom([]string{"no", "x: y", "7d", "# not", "4", "- a", "ä"}).Draw(t, f.Name)
				}
			}
			if err := set.Set(f.Name, value()); err != nil {
				t.Fatal(err)
			}
		})
		var first, second bytes.Buffer
		if err := printConfig(&first, set); err != nil {
			t.Fatal(err)
		}
		_, again := serveSet()
		if problems := applyConfig(first.Bytes(), again); len(problems) > 0 {
			t.Fatalf("%v\n%s", problems, &first)
		}
		if err := printConfig(&second, again); err != nil || first.String() != second.String() {
			t.Fatalf("%v\n%s\n%s", err, &first, &second)
		}
	})
}

func FuzzConfig(f *testing.F) {
	f.Add("fake: 3\nlocal: [4]\n")
	f.Add("egress: &x [none]\nmetal_args: *x")
	f.Fuzz(func(_ *testing.T, text string) {
		_, set := serveSet()
		applyConfig([]byte(text), set)
	})
}
