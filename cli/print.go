package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/internal/replyjson"
	"go.yaml.in/yaml/v3"
)

// print writes v as JSON or YAML if that was asked for, and else calls people.
func (a *app) print(v any, people func(w io.Writer)) error {
	switch a.output {
	case "":
		people(a.env.Out)
		return nil
	case "json":
		return writeJSON(a.env.Out, v)
	case "yaml":
		return writeYAML(a.env.Out, v)
	}
	return a.badOutput()
}

func (a *app) badOutput() error {
	return muster.Errorf(muster.EInvalid, "there is no output format %q", a.output).Because(muster.ReasonUnknownFormat).WithHint("write -o json or -o yaml")
}

// checkOutput refuses a bad format before anything is done.
func (a *app) checkOutput() error {
	switch a.output {
	case "", "json", "yaml":
		return nil
	}
	return a.badOutput()
}

func writeJSON(w io.Writer, v any) error {
	return replyjson.WriteIndented(w, v)
}

// writeYAML writes the same fields in the same order as writeJSON.
func writeYAML(w io.Writer, v any) error {
	var text bytes.Buffer
	if err := writeJSON(&text, v); err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text.Bytes(), &node); err != nil {
		return err
	}
	plain(&node)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return err
	}
	return enc.Close()
}

// plain takes the braces and needless quotes of JSON away.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		plain(c)
	}
}

// table collects rows and writes them aligned.
type table struct {
	rows [][]string
}

func newTable(head ...string) *table { return &table{rows: [][]string{head}} }

func (t *table) row(cells ...string) {
	for i, c := range cells {
		if c == "" {
			c = "-"
		}
		cells[i] = clean(c)
	}
	t.rows = append(t.rows, cells)
}

func (t *table) write(w io.Writer) {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// clip cuts a text to so many characters, and to eight at least.
func clip(text string, most int) string {
	most = max(most, 8)
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-3]) + "..."
}

// fields writes names and values, one pair a line; empty values are left out.
func fields(w io.Writer, pairs ...string) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, len(pairs[i]))
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(w, "%-*s  %s\n", width, pairs[i], clean(pairs[i+1]))
		}
	}
}

// size is a number of bytes for people.
func size(n int64) string { return plaintext.Bytes(n) }

// age is a duration for people, in at most two units.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// since is how long ago a time was; empty for the zero time.
func since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return age(now.Sub(t))
}

// stamp is a time for people, in their zone.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}
