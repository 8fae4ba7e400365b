package cli

import "strings"

// Blocks of a sparkline, lowest first.
const (
	sparkBlocks = "▁▂▃▄▅▆▇█"
	sparkASCII  = "_.-:=+*#"
)

// utf8Terminal reports whether the user's locale can show blocks.
func (a *app) utf8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := a.env.getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// spark draws points between 0 and top in width characters. A gap is a space;
// where several points share a character the highest counts.
func spark(points []*float64, top float64, width int, ascii bool) string {
	if len(points) == 0 || width <= 0 {
		return ""
	}
	width = min(width, len(points))
	levels := []rune(sparkBlocks)
	if ascii {
		levels = []rune(sparkASCII)
	}
	var b strings.Builder
	for i := range width {
		from, to := i*len(points)/width, (i+1)*len(points)/width
		most, known := 0.0, false
		for _, p := range points[from:to] {
			if p != nil {
				most, known = max(most, *p), true
			}
		}
		switch {
		case !known:
			b.WriteByte(' ')
		case top <= 0:
			b.WriteRune(levels[0])
		default:
			b.WriteRune(levels[max(0, min(len(levels)-1, int(most/top*float64(len(levels)))))])
		}
	}
	return b.String()
}
