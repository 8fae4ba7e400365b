package spec

import (
	"reflect"
	"slices"
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// Nearest finds the known word that word is most likely a slip of, "" when
// none is near: at most one slip in three letters, case and the choice of
// hyphen or underscore not counted.
func Nearest(word string, known []string) string {
	if len(word) > 64 {
		return ""
	}
	plain := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "-") }
	w := plain(word)
	best, least := "", max(1, len(w)/3)+1
	for _, k := range known {
		if n := distance(w, plain(k)); n < least {
			best, least = k, n
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour to get from a to b.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		rows = [3][]int{last, row, before}
	}
	return rows[1][len(b)]
}

// suggestField tells what an unknown field was probably meant to be.
func suggestField(name, path string, known []string) string {
	word := strings.ReplaceAll(strings.ToLower(name), "_", "-")
	if !slices.Contains(known, word) {
		if s, ok := synonym(word); ok {
			word = s
		}
	}
	if slices.Contains(known, word) {
		return "did you mean " + word + "?"
	}
	machine := fieldNames(reflect.TypeFor[wire.MachineWish]())
	top := fieldNames(reflect.TypeFor[wire.Request]())
	switch {
	case path == "" && slices.Contains(machine, word):
		return "did you mean machine." + word + "? It belongs under machine"
	case path == "machine" && slices.Contains(top, word):
		return "did you mean " + word + " at the top level, not under machine?"
	}
	if near := Nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "known here: " + strings.Join(known, ", ")
}

// synonym knows the words of other systems for our fields.
func synonym(word string) (string, bool) {
	s, ok := map[string]string{
		"cpus": "cores", "cpu": "cores", "core": "cores", "ram": "memory", "mem": "memory",
		"arch": "architecture", "gpus": "accelerators", "gpu": "accelerators",
		"model": "processor", "network": "nic-kind", "speed": "nic-speed",
		"time": "walltime", "duration": "walltime", "count": "nodes", "size": "nodes",
		"os": "image", "template": "image", "user": "users", "package": "packages",
		"machines": "machine", "host": "machine", "hosts": "machine", "minimum": "min",
		"validation": "validate", "title": "name", "storage": "disk",
	}[word]
	return s, ok
}
