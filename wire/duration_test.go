package wire_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// A duration in a reply is a number of nanoseconds and says so. What counts
// seconds says so, too, and never has the name of a duration elsewhere.
func TestRepliesHaveOneUnitOfTime(t *testing.T) {
	t.Parallel()
	var durations []string
	numbers := map[string]string{}
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(x reflect.Type) {
		switch x.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			walk(x.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[x] || x.PkgPath() == "time" {
			return
		}
		seen[x] = true
		for i := range x.NumField() {
			f := x.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			doc := f.Tag.Get("doc")
			switch {
			case f.Type == reflect.TypeFor[time.Duration]():
				durations = append(durations, name)
				if !strings.Contains(doc, "anoseconds") {
					t.Errorf("%s.%s (%s) does not say that it is nanoseconds: %q", x, f.Name, name, doc)
				}
			case f.Type.Kind() == reflect.Int64 || f.Type.Kind() == reflect.Int:
				numbers[name] = x.String() + "." + f.Name
				if strings.HasSuffix(name, "_s") && !strings.Contains(doc, "in seconds") {
					t.Errorf("%s.%s (%s) does not say that it is seconds: %q", x, f.Name, name, doc)
				}
			}
			walk(f.Type)
		}
	}
	for _, reply := range []any{
		wire.Created{}, wire.Refused{}, wire.ClusterList{}, wire.Scaled{}, wire.Extended{}, wire.Shared{}, wire.Deleted{},
		wire.VolumeList{}, wire.MachineList{}, wire.MachinesChanged{}, wire.MachineHistory{}, wire.ImageList{}, wire.ImageVerified{},
		wire.UserList{}, wire.TokenList{}, wire.Logs{}, wire.ClusterUsage{}, wire.SiteUsage{}, wire.Top{}, wire.Health{},
	} {
		walk(reflect.TypeOf(reply))
	}
	for _, name := range durations {
		if at, ok := numbers[name]; ok {
			t.Errorf("%s is %q, which is a duration elsewhere", at, name)
		}
	}
	for _, want := range []string{"walltime", "retain", "eta_spread", "took"} {
		if !strings.Contains(" "+strings.Join(durations, " ")+" ", " "+want+" ") {
			t.Errorf("no reply has %s: the test looks at too little", want)
		}
	}
}
