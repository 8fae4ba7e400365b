package page

import (
	"bytes"
	"fmt"
	"html/template"
	"io"

	"github.com/muster-hpc/muster"
)

// WriteMachine writes a drawing of a machine as one SVG file that needs nothing else: what
// its environment says of sockets, memory nodes, caches, cores and network cards. All of it
// is somebody's word: nothing becomes markup. The error is EInvalid if next to nothing is
// known of it, or one of w.
func WriteMachine(w io.Writer, name string, c muster.TestEnvironment) error {
	m, ok := machineOf(clean(c))
	if !ok {
		return muster.Errorf(muster.EInvalid, "nothing is known of how %s is built", cleanText(name))
	}
	css, err := files.ReadFile("page.css")
	if err != nil {
		return err
	}
	p := topology(m, cleanText(name))
	t, err := template.New("machine").Parse(machineSVG)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, struct {
		picture
		Style template.CSS
	}{p, template.CSS(css)}); err != nil {
		return fmt.Errorf("drawing %s: %w", cleanText(name), err)
	}
	_, err = w.Write(out.Bytes())
	return err
}

// machineSVG has the shapes of a machine; a style of its own comes first, for programs
// that know no variables.
const machineSVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{.W}} {{.H}}" width="{{.W}}" height="{{.H}}" role="img" aria-label="{{.Title}}: {{.Text}}">
<style>{{.Style}}</style>
<rect width="100%" height="100%" style="fill: var(--paper)"/>
{{range .Shapes}}{{if eq .Kind "rect"}}<rect class="{{.Class}}" x="{{.X}}" y="{{.Y}}" width="{{.W}}" height="{{.H}}"/>
{{else if eq .Kind "text"}}<text class="{{.Class}}" x="{{.X}}" y="{{.Y}}">{{.Text}}</text>
{{end}}{{end}}</svg>
`
