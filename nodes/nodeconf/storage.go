package nodeconf

import (
	"fmt"
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// storageFile is shown at login: what each place is for, and how long it lasts.
const storageFile = "/etc/motd.d/40-storage"

// storageFiles tell people where to put what.
func storageFiles(list []wire.Storage) []wire.File {
	if len(list) == 0 {
		return nil
	}
	width := 0
	for _, s := range list {
		width = max(width, len(s.Path))
	}
	var b strings.Builder
	b.WriteString("Where to put what:\n")
	for _, s := range list {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, plainLine(s.Path), plainLine(s.Text))
	}
	return []wire.File{{Path: storageFile, Mode: 0o644, Content: b.String()}}
}

// plainLine keeps a text on its line, and terminals as they are.
func plainLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
