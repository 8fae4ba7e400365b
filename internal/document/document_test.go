package document_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/internal/document/documenttest"
)

type note struct {
	Name  string         `json:"name"`
	Count int            `json:"count"`
	Sizes map[string]int `json:"sizes,omitempty"`
	Other *note          `json:"-"`
}

const noteDoc document.Kind[note] = "note/2"

func TestNote(t *testing.T) { documenttest.Check(t, noteDoc) }

func TestEncode(t *testing.T) {
	b, err := noteDoc.Encode(&note{Name: "a", Count: 3})
	if want := `{"document":"note/2","content":{"name":"a","count":3}}`; err != nil || string(b) != want {
		t.Errorf("it is written as %s, %v; want %s", b, err, want)
	}
}

func TestDecodeSaysWhatIsThere(t *testing.T) {
	for doc, want := range map[string]struct {
		code          muster.Code
		message, hint string
	}{
		`{"document":"note/3","content":{"new":1}}`:    {muster.EConflict, `f.json is "note/3"; this program reads note/2`, "newer muster"},
		`{"document":"note/1","content":{"name":"a"}}`: {muster.EConflict, `f.json is "note/1"; this program reads note/2`, "older muster"},
		`{"document":"site/2","content":{"name":"a"}}`: {muster.EConflict, `f.json is "site/2"; this program reads note/2`, "another file"},
		`{"name":"a","count":1}`:                       {muster.EConflict, `f.json names no version; this program reads note/2`, "earlier muster"},
		`{}`:                                           {muster.EConflict, `f.json names no version; this program reads note/2`, "earlier muster"},
		``:                                             {muster.ECorrupt, "f.json is damaged", "restore"},
		`[]`:                                           {muster.ECorrupt, "f.json is damaged", "restore"},
		`{"document":"note/2"}`:                        {muster.ECorrupt, "f.json is damaged", "restore"},
		`{"document":"note/2","content":null}`:         {muster.ECorrupt, "f.json is damaged", "restore"},
		`{"document":"note/2","content":{"name":"a"}} {}`:     {muster.ECorrupt, "f.json is damaged", "restore"},
		`{"document":"note/2","content":{"nam":"a"}}`:         {muster.ECorrupt, "f.json is damaged", "restore"},
		`{"document":"note/2","content":{"count":"a"}}`:       {muster.ECorrupt, "f.json is damaged", "restore"},
		`{"document":"note/2","content":{"name":"a"},"by":1}`: {muster.ECorrupt, "f.json is damaged", "restore"},
	} {
		got, err := noteDoc.Decode("f.json", []byte(doc))
		e, _ := err.(*muster.Error) //nolint:errorlint // it is made there
		if e == nil || e.Code != want.code || !strings.HasPrefix(e.Message, want.message) || !strings.Contains(e.Hint, want.hint) || !reflect.DeepEqual(got, note{}) {
			t.Errorf("%s is read as %+v, %#v; want %s: %s (%s)", doc, got, err, want.code, want.message, want.hint)
		}
	}
}

func TestUntagged(t *testing.T) {
	type inner struct{ Deep int }
	type outer struct {
		Fine  int              `json:"fine"`
		Camel int              `json:"camelCase"`
		Dash  int              `json:"a-b"`
		In    map[string]inner `json:"in"`
		Any   any              `json:"any"`
		None  int              `json:",omitempty"`
	}
	if faults := documenttest.Untagged(reflect.TypeFor[outer]()); len(faults) != 5 {
		t.Errorf("found %q; want what is wrong with Camel, Dash, Deep, Any and None", faults)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"document":"note/2","content":{"name":"a","count":3,"sizes":{"b":1}}}`))
	f.Add([]byte(`{"document":"note/3"}`))
	f.Add([]byte(`{"document":"note/2","content":{"name":"a"}}x`))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := noteDoc.Decode("it", b)
		if err != nil {
			if c := muster.CodeOf(err); c != muster.ECorrupt && c != muster.EConflict {
				t.Errorf("the error has code %s", c)
			}
			return
		}
		again, err := noteDoc.Encode(&v)
		if err != nil {
			t.Fatal(err)
		}
		if w, err := noteDoc.Decode("it", again); err != nil || !reflect.DeepEqual(v, w) && len(v.Sizes)+len(w.Sizes) > 0 {
			t.Errorf("%+v is read back as %+v, %v", v, w, err)
		}
	})
}
