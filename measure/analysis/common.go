package analysis

import (
	"reflect"
	"slices"

	"github.com/muster-hpc/muster"
)

// Common are the conditions that all nodes have, with the names of those that are
// not the same everywhere.
func Common(list []muster.TestEnvironment) muster.TestEnvironment {
	var out muster.TestEnvironment
	if len(list) == 0 {
		return out
	}
	to := reflect.ValueOf(&out).Elem()
	first := reflect.ValueOf(list[0])
	for i := range to.NumField() {
		name := muster.ConditionName(to.Type().Field(i))
		if name == "differ" || name == "vm_settings" || name == "steal" {
			continue
		}
		alike := !slices.ContainsFunc(list[1:], func(c muster.TestEnvironment) bool {
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
