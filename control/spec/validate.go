package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/muster-hpc/muster/internal/wildcard"
	"github.com/muster-hpc/muster/wire"
)

// Limits of a request.
const (
	MaxNodes    = 4000 // of a cluster
	maxLogins   = 32
	maxUsers    = 500
	maxPackages = 200
)

// Validate turns a request into a spec with every default filled in, or tells
// every problem. With problems the spec is not to be used. Only the scheduler
// may stay empty: see ForImage.
func Validate(req wire.Request, d Defaults) (muster.Spec, []muster.Problem) {
	v := &validator{}
	s := muster.Spec{
		Name: req.Name, Project: cmp.Or(req.Project, d.Project),
		Nodes: req.Nodes, Min: req.Min, Mixed: req.Mixed,
		Image: cmp.Or(req.Image, d.Image, "hpc"), Logins: req.Logins,
		Queue: req.Queue == nil || *req.Queue,
	}
	v.fault("name", checkName(req.Name))
	v.fault("project", checkProject(s.Project))
	v.fault("image", checkImage(s.Image))
	v.size(req, &s)
	s.Machine = v.machine(v.provider(req))
	s.VM = v.virtual(req.VM, s.Machine)
	s.Shape = v.shape(req.Shape, s.Machine)
	s.LinkRate = v.linkRate(req.LinkRate, s.Machine)
	if s.LinkRate > 0 && s.VM != nil && s.VM.NIC == muster.VMNICFunction {
		v.add(muster.ReasonContradiction, "link_rate", "leave out one of them", "the host holds no virtual function to a rate: its packets do not pass the host (vm.nic: vf)")
	}
	s.Packages = v.names("packages", req.Packages, maxPackages, checkPackage)
	slices.Sort(s.Packages) // their order means nothing: the same image for all

	s.Head = choice(v, "head", req.Head, cmp.Or(d.Head, muster.HeadSeparate), muster.HeadSeparate, muster.HeadShared)
	s.Scheduler = choice(v, "scheduler", req.Scheduler, d.Scheduler, muster.SchedulerSlurm, muster.SchedulerNone)
	s.Placement = choice(v, "placement", req.Placement, cmp.Or(d.Placement, muster.PlacePack), muster.PlacePack, muster.PlaceSpread, muster.PlaceAny)
	s.Validate = choice(v, "validate", req.Validate, cmp.Or(d.Validate, muster.ValidateQuick), muster.ValidateQuick, muster.ValidateFull, muster.ValidateOff)
	s.Priority = choice(v, "priority", req.Priority, "", muster.PriorityScavenger)
	if s.Priority == muster.PriorityScavenger && (req.Start != wire.StartWish{} && req.Start.At != "now") {
		v.add(muster.ReasonContradiction, "priority", "leave out one of them", "what is ended when somebody needs its machines can be promised no time")
	}
	s.IfSlow = choice(v, "if_slow", req.IfSlow, muster.SlowDeliver, muster.SlowDeliver, muster.SlowRefuse)
	s.OnPause = v.onPause(req.OnPause)
	v.checkSave(&s)
	s.Egress = choice(v, "egress", req.Egress, cmp.Or(d.Egress, muster.EgressNone), muster.EgressNone, muster.EgressProxy, muster.EgressNAT)
	within := req.Within
	if within == string(muster.StandDataCentre) { // as its kind is called in descriptions
		within = muster.WithinSite
	}
	s.Within = choice(v, "within", within, "", muster.Within()...)
	if slices.Contains([]string{muster.WithinChassis, muster.WithinRack, muster.WithinLeaf}, s.Within) && s.Placement == muster.PlaceSpread && req.Placement != "" {
		v.add(muster.ReasonContradiction, "within", "leave out one of them", "within: %s and placement: spread contradict each other", s.Within)
	}
	if req.Walltime != "" {
		v.walltime(req.Walltime, &s)
	}
	s.Start = v.start(req.Start, d.Now)
	v.problems = append(v.problems, CheckWindow(s, d.Now)...)
	v.volumes(req.Home, req.HomeQuota, req.Retain, req.Volumes, d, &s)
	s.Users = v.names("users", req.Users, maxUsers, checkUser)
	doors, err := muster.ParseDoors(req.Doors)
	if err != nil {
		text, hint := muster.Explain(err)
		v.add(muster.ReasonOf(err), "doors", hint, "%s", text)
	}
	s.Doors = doors
	if len(req.Users) == 0 {
		s.Users = slices.Clone(d.Users)
	}
	if len(v.problems) > 0 {
		return s, limitProblems(v.problems)
	}
	return s, nil
}

type validator struct{ problems []muster.Problem }

func (v *validator) add(why muster.Reason, field, hint, format string, args ...any) {
	v.problems = append(v.problems, muster.Problem{Field: field, Reason: why, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

func (v *validator) fault(field string, f *fault) {
	if f != nil {
		v.add(f.why, field, f.hint, "%s", f.message)
	}
}

// size judges how many nodes are asked.
func (v *validator) size(req wire.Request, s *muster.Spec) {
	switch {
	case req.Nodes == 0:
		v.add(muster.ReasonRequired, "nodes", "write: nodes: N, 1 or more", "the request asks for no nodes")
	case req.Nodes < 0:
		v.add(muster.ReasonOutOfRange, "nodes", "", "%d nodes are not possible", req.Nodes)
	case req.Nodes > MaxNodes:
		v.add(muster.ReasonOutOfRange, "nodes", "", "%d nodes are too many; at most %d are possible", req.Nodes, MaxNodes)
	}
	switch {
	case req.Min < 0:
		v.add(muster.ReasonOutOfRange, "min", "leave it out to need all nodes", "%d nodes are not possible", req.Min)
	case req.Min > req.Nodes && req.Nodes > 0:
		v.add(muster.ReasonOutOfRange, "min", fmt.Sprintf("write min: %d or less, or leave it out to need all nodes", req.Nodes), "min is %d, more than the %d nodes asked", req.Min, req.Nodes)
	case req.Min == 0:
		s.Min = req.Nodes
	}
	if req.Logins < 0 || req.Logins > maxLogins {
		v.add(muster.ReasonOutOfRange, "logins", fmt.Sprintf("write 0 to %d; the head is a login node too", maxLogins), "%d login nodes are not possible", req.Logins)
	}
}

func (v *validator) walltime(text string, s *muster.Spec) {
	d, f := duration(text)
	switch {
	case f != nil:
		v.fault("walltime", f)
	case d < minWalltime:
		v.add(muster.ReasonOutOfRange, "walltime", "", "%q is too short; the least is %s", short(text), FormatDuration(minWalltime))
	case d > maxWalltime:
		v.add(muster.ReasonOutOfRange, "walltime", "leave it out for no limit", "%q is too long; the most is %s", short(text), FormatDuration(maxWalltime))
	}
	s.Walltime = muster.Duration(d)
}

// names judges a list of names, each of which may stand in it once.
func (v *validator) names(field string, list []string, most int, judge func(string) *fault) []string {
	if len(list) > most {
		v.add(muster.ReasonTooMany, field, "", "%d entries; at most %d are possible", len(list), most)
		return nil
	}
	var out []string
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch f := judge(s); {
		case f != nil:
			v.fault(at, f)
		case slices.Contains(out, s):
			v.add(muster.ReasonGivenTwice, at, "keep one", "%s is given twice", s)
		default:
			out = append(out, s)
		}
	}
	return out
}

// machine judges the constraints on each machine.
func (v *validator) machine(w wire.MachineConstraints) muster.Constraints {
	out := muster.Constraints{
		Provider: v.pattern("provider", w.Provider), Architecture: w.Architecture,
		Processor: v.pattern("processor", w.Processor), Class: v.pattern("class", w.Class),
		Rack: v.pattern("rack", w.Rack), NICKind: v.nicKind(w.NICKind),
		Accelerator: v.pattern("accelerator", w.Accelerator),
		Cores:       v.quantity("cores", w.Cores, counted()),
		Memory:      v.quantity("memory", w.Memory, bytesMeasure()),
		Disk:        v.quantity("disk", w.Disk, bytesMeasure()),
		NICs:        v.quantity("nics", w.NICs, counted()),
		NICSpeed:    v.quantity("nic_speed", w.NICSpeed, speedMeasure()),
	}
	out.Accelerators = v.quantity("accelerators", w.Accelerators, counted())
	if w.Architecture != "" {
		out.Architecture = choice(v, "machine.architecture", w.Architecture, "", "amd64", "arm64")
	}
	if !out.NICSpeed.IsZero() && excludesAll(out.NICs) {
		v.add(muster.ReasonContradiction, "machine.nic_speed", "leave out one of them", "a speed is asked of machines without message NICs")
	}
	switch {
	case out.Accelerator != "" && excludesAll(out.Accelerators):
		v.add(muster.ReasonContradiction, "machine.accelerator", "leave out one of them", "a model is asked of machines without accelerators")
	case out.Accelerator != "" && out.Accelerators.IsZero():
		out.Accelerators = muster.Quantity{Op: muster.AtLeast, Value: 1}
	}
	return out
}

// excludesAll reports whether a quantity asks for none at all.
func excludesAll(q muster.Quantity) bool { return !q.IsZero() && q.Met(0) && !q.Met(1) }

func (v *validator) pattern(field, s string) string {
	v.fault("machine."+field, checkPattern(s))
	return s
}

// nicKind judges a pattern over the kinds of NICs that there are, none of which it may
// miss.
func (v *validator) nicKind(s string) string {
	if v.pattern("nic_kind", s); s == "" || checkPattern(s) != nil {
		return s
	}
	kinds := muster.NICKinds()
	if !slices.ContainsFunc(kinds, func(k string) bool { return wildcard.Match(strings.ToLower(s), k) }) {
		hint := "write " + strings.Join(kinds, " or ")
		if near := suggest.Of(s, kinds); near != "" {
			hint = "did you mean " + near + "?"
		}
		v.add(muster.ReasonBadValue, "machine.nic_kind", hint, "there are no NICs of kind %q", short(s))
	}
	return s
}

func (v *validator) quantity(field, s string, m measure) muster.Quantity {
	if s == "" {
		return muster.Quantity{}
	}
	q, f := m.quantity(s)
	v.fault("machine."+field, f)
	return q
}

// choice judges a word out of a few.
func choice[T ~string](v *validator, field, got string, otherwise T, known ...T) T {
	if got == "" {
		return otherwise
	}
	words := make([]string, len(known))
	for i, k := range known {
		if string(k) == got {
			return k
		}
		words[i] = string(k)
	}
	hint := "write " + strings.Join(words, " or ")
	others := alternatives(field)
	if near := suggest.Of(got, slices.AppendSeq(words, maps.Keys(others))); near != "" {
		hint = "did you mean " + cmp.Or(others[near], near) + "?"
	}
	v.add(muster.ReasonBadValue, field, hint, "%q is not possible here", short(got))
	return otherwise
}

// onPause reads what becomes of running jobs in a pause.
func (v *validator) onPause(text string) muster.OnPause {
	o, problem := ParseOnPause(text)
	if problem != nil {
		v.problems = append(v.problems, *problem)
	}
	return o
}

// checkSave refuses what cannot be saved, with the reason.
func (v *validator) checkSave(s *muster.Spec) {
	if s.OnPause == muster.PauseHibernate && s.VM != nil {
		v.add(muster.ReasonCannotHibernate, "on_pause", "write save, wait or requeue", "virtual machines do not hibernate: they are saved")
	}
	if s.OnPause == muster.PauseFreeze && s.VM != nil {
		v.add(muster.ReasonCannotFreeze, "on_pause", "write save, wait or requeue", "virtual machines are not frozen, because their clocks would stand: they are saved")
	}
	if s.OnPause != muster.PauseSave {
		return
	}
	if p := CannotSave(s.VM); p != nil {
		v.problems = append(v.problems, *p)
	}
}

// CannotSave says why a cluster with such virtual machines cannot be saved; nil: it can.
func CannotSave(vm *muster.VMOptions) *muster.Problem {
	switch {
	case vm == nil:
		return &muster.Problem{Field: "on_pause", Reason: muster.ReasonNeedsVirtualMachine,
			Message: "only virtual machines can be saved with the memory of jobs, and this cluster has none", Hint: "write wait, requeue or freeze; or ask for provider: vm"}
	case vm.NIC == muster.VMNICFunction:
		return &muster.Problem{Field: "on_pause", Reason: muster.ReasonCannotSave,
			Message: "a virtual machine with a virtual function cannot be saved: what the card has of it cannot be read", Hint: "write vm.nic: virtio, or on_pause: requeue"}
	}
	return nil
}

// ParseOnPause reads what becomes of running jobs in a pause; "" stays.
func ParseOnPause(text string) (muster.OnPause, *muster.Problem) {
	v := &validator{}
	o := choice(v, "on_pause", text, "", muster.OnPauses()...)
	switch {
	case o == muster.PauseStop:
		o = muster.PauseWait
	case len(v.problems) > 0:
		return "", &v.problems[0]
	}
	return o, nil
}

// alternatives are other words for the choices of a field, with those choices.
func alternatives(field string) map[string]string {
	switch field {
	case "machine.architecture":
		return map[string]string{"x86_64": "amd64", "aarch64": "arm64"}
	case "within":
		return map[string]string{string(muster.StandDataCentre): muster.WithinSite}
	}
	return nil
}
