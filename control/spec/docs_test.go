package spec

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/wire"
)

// The examples of the documentation are valid, say the same in each format,
// and every field is described.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text := string(readFile(t, "../../docs/users/requests.md"))
	var last *wire.Request
	seen := 0
	for _, m := range regexp.MustCompile("(?s)```(yaml|json|xml)\n(.*?)```").FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(m[2], "<scale>") {
			if _, err := ReadScale([]byte(m[2]), XML); err != nil {
				t.Error(err)
			}
			continue
		}
		req, _, err := Read([]byte(m[2]), Format(m[1]), Defaults{})
		if err != nil {
			t.Errorf("%v\n%s", err, m[2])
			continue
		}
		if last != nil && m[1] != "yaml" && !reflect.DeepEqual(req, *last) {
			t.Errorf("%s differs:\n%+v\n%+v", m[1], req, *last)
		}
		last = &req
		seen++
	}
	if seen != 5 {
		t.Errorf("%d examples", seen)
	}
	for _, v := range []any{wire.Request{}, wire.MachineConstraints{}, wire.ShapeWish{}, wire.VMWish{}} {
		for _, name := range fieldNames(reflect.TypeOf(v)) {
			if !strings.Contains(text, "| `"+name+"` |") {
				t.Errorf("field %s is not described", name)
			}
		}
	}
}
