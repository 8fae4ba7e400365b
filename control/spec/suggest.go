package spec

import (
	"reflect"
	"slices"
	"strings"

	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/muster-hpc/muster/wire"
)

// suggestField reports what an unknown field was probably meant to be.
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
	machine := fieldNames(reflect.TypeFor[wire.MachineConstraints]())
	top := fieldNames(reflect.TypeFor[wire.Request]())
	switch {
	case path == "" && slices.Contains(machine, word):
		return "did you mean machine." + word + "? It belongs under machine"
	case path == "machine" && slices.Contains(top, word):
		return "did you mean " + word + " at the top level, not under machine?"
	}
	if near := suggest.Of(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "known here: " + strings.Join(known, ", ")
}

// synonym knows the words of other systems for our fields.
func synonym(word string) (string, bool) {
	s, ok := map[string]string{
		"cpus": "cores", "cpu": "cores", "core": "cores", "ram": "memory", "mem": "memory",
		"arch": "architecture", "gpus": "accelerators", "gpu": "accelerators",
		"model": "processor", "network": "nic_kind", "speed": "nic_speed",
		"time": "walltime", "duration": "walltime", "count": "nodes", "size": "nodes",
		"os": "image", "template": "image", "user": "users", "package": "packages",
		"machines": "machine", "host": "machine", "hosts": "machine", "minimum": "min",
		"validation": "validate", "quota": "home_quota", "keep": "retain", "volume": "volumes", "mounts": "volumes", "title": "name", "storage": "disk",
	}[word]
	return s, ok
}
