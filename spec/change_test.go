package spec_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/spec"
	"github.com/muster-hpc/muster/wire"
)

// A change of size and an end are written in the three formats of requests, and mean the
// same in each.
func TestChangesInThreeFormats(t *testing.T) {
	t.Parallel()
	logins := 2
	want := wire.ScaleRequest{Cluster: "c-2345678923", Change: 3, Logins: &logins, Some: true}
	for format, text := range map[spec.Format]string{
		spec.YAML: "cluster: c-2345678923\nchange: 3\nlogins: 2\nsome: true\n",
		spec.JSON: `{"cluster": "c-2345678923", "change": 3, "logins": 2, "some": true}`,
		spec.XML:  "<scale><cluster>c-2345678923</cluster><change>3</change><logins>2</logins><some>true</some></scale>",
	} {
		if got, err := spec.ReadScale([]byte(text), format); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %v", format, got, err)
		}
	}
	for format, text := range map[spec.Format]string{
		spec.YAML: "cluster: cfd\nerase: true", spec.JSON: `{"cluster": "cfd", "erase": true}`, spec.XML: "<terminate><cluster>cfd</cluster><erase>true</erase></terminate>",
	} {
		if got, err := spec.ReadTerminate([]byte(text), format); err != nil || got.Cluster != "cfd" || !got.Erase {
			t.Errorf("%s: %+v %v", format, got, err)
		}
	}
}

func TestWrongChanges(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nodes: 3":                              "cluster: it is missing",
		"cluster: a\nnods: 3\nnow: maybe":       "nods (line 2, column 1): there is no such field",
		"cluster: a\nnodes: many":               "nodes (line 2",
		"":                                      "cluster and a size",
		"<cluster><name>x</name></cluster>":     "outermost element must be <scale>",
		"<scale><nodes>3</nodes></scale>":       "cluster: it is missing",
		"<scale><cluster>a</cluster></scale> x": "follows the end",
	} {
		_, err := spec.ReadScale([]byte(text), spec.FormatOf("", "", []byte(text)))
		var e *muster.Error
		if !errors.As(err, &e) || e.Code != muster.EInvalid || !strings.Contains(e.Error()+e.Hint, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := spec.ReadScale([]byte("cluster: a\nnods: 3\nnow: maybe"), spec.YAML); strings.Count(err.Error(), ";") < 1 {
		t.Errorf("not everything at once: %v", err)
	}
}

func FuzzChanges(f *testing.F) {
	f.Add([]byte("cluster: a\nnodes: 3"))
	f.Add([]byte("<scale><cluster>a</cluster></scale>"))
	f.Add([]byte(`{"cluster":"a","remove":"n[01-04]"}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		format := spec.FormatOf("", "", data)
		_, _ = spec.ReadScale(data, format)
		_, _ = spec.ReadTerminate(data, format)
	})
}
