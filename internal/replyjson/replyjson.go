// Package replyjson writes JSON that programs read: what the API replies and what commands
// print. It is the JSON of encoding/json, but for lists: one that has nothing in it is [],
// never null, however it was made.
package replyjson

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Marshal returns a value on one line.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, options()) }

// Write writes a value on one line, with the line's end.
func Write(w io.Writer, v any) error { return write(w, v, options()) }

// WriteIndented writes a value over many lines, for eyes as well.
func WriteIndented(w io.Writer, v any) error {
	return write(w, v, json.JoinOptions(options(), jsontext.WithIndent("  ")))
}

func write(w io.Writer, v any, o json.Options) error {
	text, err := json.Marshal(v, o)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

func options() json.Options {
	return json.JoinOptions(jsonv1.DefaultOptionsV1(), json.FormatNilSliceAsNull(false), jsontext.EscapeForHTML(false))
}
