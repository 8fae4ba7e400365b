package replyjson_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/replyjson"
	"github.com/muster-hpc/muster/wire"
)

func TestListsAreNeverNull(t *testing.T) {
	t.Parallel()
	type list struct {
		Empty []string            `json:"empty"`
		Left  []string            `json:"left,omitempty"`
		None  *string             `json:"none"`
		Many  map[string][]string `json:"many"`
		Raw   json.RawMessage     `json:"raw"`
	}
	got, err := replyjson.Marshal([]list{{Many: map[string][]string{"b": nil, "a": {"<"}}, Raw: json.RawMessage(`{"x": 1}`)}})
	if want := `[{"empty":[],"none":null,"many":{"a":["<"],"b":[]},"raw":{"x":1}}]`; err != nil || string(got) != want {
		t.Errorf("%s %v", got, err)
	}
	if got, err := replyjson.Marshal([]list(nil)); err != nil || string(got) != "[]" {
		t.Errorf("%s %v", got, err)
	}
}

// But for lists, the form is that of encoding/json.
func TestFormIsThatOfEncodingJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, v := range []any{
		wire.Created{Name: "a<b>&", Spec: muster.Spec{Users: []string{"a"}, Retain: muster.Duration(1500 * time.Millisecond)}},
		wire.Cluster{Created: at, Users: []string{}, Doors: []muster.Door{}, Nodes: []wire.Node{}, Spec: muster.Spec{Users: []string{}}},
		wire.Event{At: at, Text: "\u2028 \x01"}, map[string]any{"b": 1.5e30, "a": nil}, muster.Errorf(muster.EInvalid, "x"),
	} {
		for name, write := range map[string]func(*bytes.Buffer) error{
			"":   func(b *bytes.Buffer) error { return replyjson.Write(b, v) },
			"  ": func(b *bytes.Buffer) error { return replyjson.WriteIndented(b, v) },
		} {
			var got, want bytes.Buffer
			enc := json.NewEncoder(&want)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", name)
			if err := enc.Encode(v); err != nil {
				t.Fatal(err)
			}
			if err := write(&got); err != nil || got.String() != want.String() {
				t.Errorf("%v\n%s%s", err, got.String(), want.String())
			}
		}
	}
}
