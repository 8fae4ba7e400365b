package spec_test

import (
	"reflect"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/internal/errortest"
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
		"nodes: 3":                              "cluster required",
		"cluster: a\nnods: 3\nnow: maybe":       "nods unknown-field line 2, column 1; now wrong-type line 3, column 6",
		"cluster: a\nnodes: many":               "nodes wrong-type line 2, column 8",
		"":                                      "request required",
		"<cluster><name>x</name></cluster>":     "request bad-syntax line 1, column 1",
		"<scale><nodes>3</nodes></scale>":       "cluster required",
		"<scale><cluster>a</cluster></scale> x": "request bad-syntax line 1, column 36",
	} {
		_, err := spec.ReadScale([]byte(text), spec.FormatOf("", "", []byte(text)))
		if muster.CodeOf(err) != muster.EInvalid || errortest.Brief(err) != want {
			t.Errorf("%q: %v, %s", text, err, errortest.Brief(err))
		}
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
