package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// wish is something that a request may take over from another one.
type wish struct {
	text string // "placement: spread"
	take func(*wire.Request)
}

// Inherit fills in what a request leaves open with what another one asks for: all that
// makes the shape of a cluster, and nothing of who uses it, when, and with what data. What
// the request says itself counts first: a wish of the other one that contradicts it is not
// taken over, and comes back in words, with the contradiction.
func Inherit(req, had wire.Request, d Defaults) (wire.Request, []string) {
	if req.Nodes == 0 {
		req.Nodes, req.Min = had.Nodes, cmp.Or(req.Min, had.Min)
	}
	var left []string
	_, problems := Validate(req, d)
	for _, w := range wishes(req, had) {
		next := req
		w.take(&next)
		_, more := Validate(next, d)
		if i := slices.IndexFunc(more, func(p muster.Problem) bool { return !slices.Contains(problems, p) }); i >= 0 {
			left = append(left, w.text+": "+more[i].Message)
			continue
		}
		req, problems = next, more
	}
	return req, left
}

// wishes are those of had that req leaves open.
func wishes(req, had wire.Request) []wish {
	var list []wish
	add := func(open bool, take func(*wire.Request), format string, args ...any) {
		if open {
			list = append(list, wish{fmt.Sprintf(format, args...), take})
		}
	}
	text := func(name string, of func(*wire.Request) *string) {
		value := *of(&had)
		add(*of(&req) == "" && value != "", func(r *wire.Request) { *of(r) = value }, "%s: %s", name, value)
	}
	text("image", func(r *wire.Request) *string { return &r.Image })
	if req.Image == "" || had.Scheduler == string(muster.SchedulerNone) { // another image may have none
		text("scheduler", func(r *wire.Request) *string { return &r.Scheduler })
	}
	add(len(req.Packages) == 0 && len(had.Packages) > 0, func(r *wire.Request) { r.Packages = had.Packages }, "packages: %s", strings.Join(had.Packages, " "))
	if req.Provider == "" {
		text("provider", func(r *wire.Request) *string { return &r.Machine.Provider })
	}
	add(req.VM == wire.VMWish{} && had.VM != wire.VMWish{}, func(r *wire.Request) { r.VM = had.VM }, "vm")
	if !req.Mixed {
		text("class", func(r *wire.Request) *string { return &r.Machine.Class })
	}
	add(!req.Mixed && had.Mixed && req.Machine.Class == "", func(r *wire.Request) { r.Mixed = true }, "mixed: true")
	text("architecture", func(r *wire.Request) *string { return &r.Machine.Architecture })
	text("processor", func(r *wire.Request) *string { return &r.Machine.Processor })
	text("rack", func(r *wire.Request) *string { return &r.Machine.Rack })
	text("cores", func(r *wire.Request) *string { return &r.Machine.Cores })
	text("memory", func(r *wire.Request) *string { return &r.Machine.Memory })
	text("disk", func(r *wire.Request) *string { return &r.Machine.Disk })
	text("nics", func(r *wire.Request) *string { return &r.Machine.NICs })
	text("nic_speed", func(r *wire.Request) *string { return &r.Machine.NICSpeed })
	text("nic_kind", func(r *wire.Request) *string { return &r.Machine.NICKind })
	text("accelerators", func(r *wire.Request) *string { return &r.Machine.Accelerators })
	text("accelerator", func(r *wire.Request) *string { return &r.Machine.Accelerator })
	none := wire.ShapeWish{}
	add(reflect.DeepEqual(req.Shape, none) && !reflect.DeepEqual(had.Shape, none), func(r *wire.Request) { r.Shape = had.Shape }, "shape")
	text("link_rate", func(r *wire.Request) *string { return &r.LinkRate })
	text("head", func(r *wire.Request) *string { return &r.Head })
	add(req.Logins == 0 && had.Logins > 0, func(r *wire.Request) { r.Logins = had.Logins }, "logins: %d", had.Logins)
	text("placement", func(r *wire.Request) *string { return &r.Placement })
	text("within", func(r *wire.Request) *string { return &r.Within })
	return list
}
