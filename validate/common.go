package validate

import (
	"reflect"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// Common are the conditions that all nodes have, with the names of those that are
// not the same everywhere.
func Common(list []muster.Circumstances) muster.Circumstances {
	var out muster.Circumstances
	if len(list) == 0 {
		return out
	}
	to := reflect.ValueOf(&out).Elem()
	first := reflect.ValueOf(list[0])
	for i := range to.NumField() {
		name, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ",")
		if name == "differ" {
			continue
		}
		alike := !slices.ContainsFunc(list[1:], func(c muster.Circumstances) bool {
			return !reflect.DeepEqual(reflect.ValueOf(c).Field(i).Interface(), first.Field(i).Interface())
		})
		if alike {
			to.Field(i).Set(first.Field(i))
		} else {
			out.Differ = append(out.Differ, name)
		}
	}
	slices.Sort(out.Differ)
	return out
}
