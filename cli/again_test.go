package cli_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
	"go.yaml.in/yaml/v3"
)

// What show prints as the spec of a cluster makes another like it, under another name.
func TestShownSpecMakesAnother(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 8})
	w := at(t, s)
	w.run("create", "one", "-n", "2", "--head", "shared", "--cores", ">=1", "--memory", ">=1MiB", "--walltime", "1w2d", "--retain", "0", "--packages", "zsh").want(t, 0)
	var shown struct {
		Spec map[string]any
	}
	data := func(format string) []byte {
		out := w.run("show", "one", "-o", format).want(t, 0).out
		shown.Spec = nil
		read := json.Unmarshal
		if format == "yaml" {
			read = yaml.Unmarshal
		}
		if err := read([]byte(out), &shown); err != nil {
			t.Fatal(err)
		}
		shown.Spec["name"] = "two"
		text, err := json.Marshal(shown.Spec)
		if format == "yaml" {
			text, err = yaml.Marshal(shown.Spec)
		}
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, format := range []string{"json", "yaml"} {
		var first wire.Cluster
		if err := json.Unmarshal([]byte(w.run("show", "one", "-o", "json").want(t, 0).out), &first); err != nil {
			t.Fatal(err)
		}
		var other wire.Created
		out := w.stdin(string(data(format))).run("create", "-f", "-", "--dry-run", "-o", "json").want(t, 0).out
		if err := json.Unmarshal([]byte(out), &other); err != nil {
			t.Fatal(err)
		}
		first.Spec.Name = "two"
		if !reflect.DeepEqual(first.Spec, other.Spec) {
			t.Errorf("%s:\n%+v\n%+v", format, first.Spec, other.Spec)
		}
	}
}
