package yamldoc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/internal/yamldoc"
	"go.yaml.in/yaml/v3"
)

// read takes a mapping of two fields, as files do.
func read(data string) (got map[string]string, r yamldoc.Reader) {
	got = map[string]string{}
	if top := r.Parse([]byte(data), "see the example", "put it into one"); top != nil {
		r.Fields(top, "", []string{"name", "rack"}, func(name string, v *yaml.Node) { got[name] = r.Text(name, v) })
	}
	return got, r
}

func TestReader(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"name: ' a '\nrack: 7":          "map[name:a rack:7] []",
		"name: null":                    "map[name:] []",
		"":                              "map[] []",
		"name: a\nname: b\nrak: c":      "map[name:a] [name given-twice line 2, column 1 rak unknown-field line 3, column 1]",
		"zzzzzzzz: 1":                   "map[] [zzzzzzzz unknown-field line 1, column 1]",
		"name: [a]":                     "map[name:] [name wrong-type line 1, column 7]",
		"- name":                        "map[] [wrong-type line 1, column 1]",
		"a: 1\n---\nb: 1":               "map[] [file bad-syntax]",
		strings.Repeat("x", 90) + ": 1": "map[] [" + strings.Repeat("x", 60) + "... unknown-field line 1, column 1]",
	} {
		got, r := read(data)
		if text := fmt.Sprint(got, " ", errortest.Problems(r.Problems)); text != want {
			t.Errorf("%q:\n%s\n%s", data, text, want)
		}
	}
	if _, r := read("name: ["); len(r.Problems) != 1 || r.Problems[0].Reason != muster.ReasonBadSyntax {
		t.Errorf("%+v", r.Problems)
	}
}

func FuzzReader(f *testing.F) {
	f.Add("name: a\nrack: &x b")
	f.Add("name: *x\n? [a]: b\n--- |\n")
	f.Fuzz(func(_ *testing.T, data string) { read(data) })
}
