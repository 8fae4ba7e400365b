package configure

import "strings"

// Marks around lines of Muster in a file that belongs to the image.
const (
	blockBegin = "# Muster begin. Changes between these marks do not last."
	blockEnd   = "# Muster end."
)

// withBlock replaces the marked lines in a text, or adds them at its end. An
// empty block takes the marks away too. A begin without an end reaches to the
// end of the text.
func withBlock(text, block string) string {
	var b strings.Builder
	in := false
	for l := range strings.Lines(text) {
		switch s := strings.TrimRight(l, "\n"); {
		case !in && s == blockBegin:
			in = true
		case in && s == blockEnd:
			in = false
		case !in:
			b.WriteString(l)
		}
	}
	if block == "" {
		return b.String()
	}
	if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(blockBegin + "\n" + block)
	if !strings.HasSuffix(block, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(blockEnd + "\n")
	return b.String()
}

// block puts lines into a file of the image.
func (f files) block(path, block string) error {
	old, err := f.read(path)
	if err != nil {
		return err
	}
	updated := withBlock(old, block)
	if updated == old {
		return nil
	}
	return f.replace(path, updated, 0o644)
}
