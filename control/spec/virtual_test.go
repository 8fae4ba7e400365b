package spec_test

import (
	"reflect"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/wire"
)

// How virtual machines are to be is read, and written as a request that means the same; what contradicts itself is refused with its
// field.
func TestVirtual(t *testing.T) {
	t.Parallel()
	base := wire.Request{Name: "v", Nodes: 2, Provider: "vm"}
	d := spec.Defaults{Users: []string{"alice"}, Project: "p"}
	for name, c := range map[string]struct {
		wish wire.VMWish
		want muster.VMOptions
	}{
		"default":    {wire.VMWish{}, muster.VMOptions{Emulate: true}},
		"untuned":    {wire.VMWish{Tune: "off"}, muster.VMOptions{Untuned: true, Emulate: true}},
		"no":         {wire.VMWish{Tune: "no", Emulate: "False"}, muster.VMOptions{Untuned: true}},
		"yes":        {wire.VMWish{Tune: "true", Emulate: "yes"}, muster.VMOptions{Emulate: true}},
		"everything": {wire.VMWish{Tune: "on", NIC: "vf", Pages: "1GiB", Emulate: "off"}, muster.VMOptions{NIC: "vf", Pages: "1GiB"}},
	} {
		r := base
		r.VM = c.wish
		s, problems := spec.Validate(r, d)
		if len(problems) > 0 || s.VM == nil || !reflect.DeepEqual(*s.VM, c.want) || s.Machine.Provider != muster.ProviderVM {
			t.Errorf("%s: %+v, %v", name, s.VM, problems)
			continue
		}
		again, problems := spec.Validate(spec.RequestOf(s), d)
		if len(problems) > 0 || !reflect.DeepEqual(again.VM, s.VM) {
			t.Errorf("%s, asked again: %+v, %v", name, again.VM, problems)
		}
	}
	for _, word := range []string{"VM", "kvm"} { // whoever means virtual machines gets no slices
		r := base
		r.Provider = word
		if _, problems := spec.Validate(r, d); len(problems) != 1 || problems[0].Field != "provider" || problems[0].Hint != "did you mean vm?" {
			t.Errorf("%s: %+v", word, problems)
		}
	}
	for field, change := range map[string]func(*wire.Request){
		"vm":       func(r *wire.Request) { r.Provider, r.VM.Tune = "local", "on" },
		"provider": func(r *wire.Request) { r.Machine.Provider = "local" },
		"vm.tune":  func(r *wire.Request) { r.VM.Tune = "maybe" },
		"vm.nic":   func(r *wire.Request) { r.VM.NIC = "e1000" },
		"vm.pages": func(r *wire.Request) { r.VM.Tune, r.VM.Pages = "off", "2MiB" },
	} {
		r := base
		change(&r)
		_, problems := spec.Validate(r, d)
		found := false
		for _, p := range problems {
			found = found || p.Field == field && p.Hint != ""
		}
		if !found {
			t.Errorf("%s: %+v", field, problems)
		}
	}
}
