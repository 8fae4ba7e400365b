package yamldoc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/yamldoc"
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
		"name: ' a '\nrack: 7":          "map[name:a rack:7]",
		"name: null":                    "map[name:]",
		"":                              "map[]",
		"name: a\nname: b\nrak: c":      "map[name:a] name|line 2|the field is given twice|keep one rak|line 3|there is no such field|did you mean rack?",
		"zzzzzzzz: 1":                   "map[] zzzzzzzz|line 1|there is no such field|there are: name, rack",
		"name: [a]":                     "map[name:] name|line 1|a text is expected|write one value",
		"- name":                        "map[] |line 1|fields are expected|fields are: name, rack",
		"a: 1\n---\nb: 1":               "map[] file||there is more than one document in it|put it into one",
		strings.Repeat("x", 90) + ": 1": "map[] " + strings.Repeat("x", 60) + "...|line 1|there is no such field|there are: name, rack",
	} {
		got, r := read(data)
		text := fmt.Sprint(got)
		for _, p := range r.Problems {
			text += fmt.Sprintf(" %s|%s|%s|%s", p.Field, p.Place, p.Message, p.Hint)
		}
		if text != want {
			t.Errorf("%q:\n%s\n%s", data, text, want)
		}
	}
	if _, r := read("name: ["); len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0].Message, "it is not valid YAML: ") {
		t.Errorf("%+v", r.Problems)
	}
}

func FuzzReader(f *testing.F) {
	f.Add("name: a\nrack: &x b")
	f.Add("name: *x\n? [a]: b\n--- |\n")
	f.Fuzz(func(_ *testing.T, data string) { read(data) })
}
