package tuning

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ModulePath is where modules lie, below the home of whoever tuned.
const ModulePath = ".local/share/muster/modules"

// ModuleName is the name by which the module of a program is loaded.
func ModuleName(program string) string { return "tuned/" + plain(program) }

// plain is a name of letters, digits, dots and hyphens.
func plain(name string) string {
	name = name[strings.LastIndex(name, "/")+1:]
	return strings.TrimLeft(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '-'
	}, name), ".-")
}

// Module is the text of a module of Lmod that sets what was found; about is one line on it.
func Module(s Setting, about string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- Written by muster program tune.\nwhatis(%s)\n", lua(about))
	help := about + "\n" + s.Name()
	if s.PerNode > 0 {
		help += fmt.Sprintf("\nA module cannot choose the ranks: start %d on each node.", s.PerNode)
	}
	fmt.Fprintf(&b, "help(%s)\n", lua(help))
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		fmt.Fprintf(&b, "setenv(%s, %s)\n", lua(name), lua(s.Env[name]))
	}
	return b.String()
}

// lua is a string of Lua. Bytes that are not printable ASCII are written as their decimal codes.
func lua(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, "\\%03d", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// WriteScript is a script for bash that puts the module into the home, all of it or nothing.
func WriteScript(program, text string) string {
	file := "$HOME/" + ModulePath + "/" + ModuleName(program) + ".lua"
	return fmt.Sprintf("set -e\nfile=\"%s\"\nmkdir -p \"${file%%/*}\"\nprintf '%%s' %s >\"$file.new\"\nmv \"$file.new\" \"$file\"\n", file, "'"+strings.ReplaceAll(text, "'", `'\''`)+"'")
}
