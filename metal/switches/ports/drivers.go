package ports

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/switches"
	"github.com/muster-hpc/muster/metal/switches/ovs"
	"github.com/muster-hpc/muster/metal/switches/script"
)

// Driver makes what drives the switch at a place: the name of a switch without the
// kind. It touches nothing yet. EInvalid: there can be no switch.
type Driver func(place string) (switches.Switch, error)

// Drivers are what a site can drive, by kind: the part of a switch's name before the
// first colon.
type Drivers map[string]Driver

// DriversOf returns all drivers that are built in.
func DriversOf() Drivers { return Drivers{"ovs": openOVS, "script": openScript} }

// bridge is what an Open vSwitch of Muster's own calls its one bridge.
const bridge = "br0"

// openOVS drives an Open vSwitch by the sockets in a directory.
func openOVS(dir string) (switches.Switch, error) {
	if !filepath.IsAbs(dir) {
		return nil, muster.Errorf(muster.EInvalid, "an Open vSwitch is named by its directory, and %.70q is not an absolute path", dir).
			WithHint("write the switch as ovs:/var/lib/muster/lab/switch")
	}
	return ovs.New(ovs.Config{Dir: filepath.Clean(dir), Bridge: bridge}), nil
}

// openScript drives a switch by a program of the site: ///PATH, or ///PATH#NAME where one
// program drives several.
func openScript(place string) (switches.Switch, error) {
	path, name, _ := strings.Cut(strings.TrimPrefix(place, "//"), "#")
	if !filepath.IsAbs(path) || path != filepath.Clean(path) {
		return nil, muster.Errorf(muster.EInvalid, "a site's program is named by its path, and %.70q is not an absolute path", path).
			WithHint("write the switch as script:///usr/local/sbin/our-switch#sw-r1")
	}
	return script.New(script.Config{Program: path, Name: name}), nil
}

// Open makes what drives the switch of a name: KIND:PLACE. Returns EInvalid for kinds
// that there are none of.
func (d Drivers) Open(name string) (switches.Switch, error) {
	kind, place, ok := strings.Cut(name, ":")
	open := d[kind]
	if !ok || open == nil {
		return nil, muster.Errorf(muster.EInvalid, "nothing here can drive the switch %.70q", name).Because(muster.ReasonNoProvider).
			WithHint("write KIND:PLACE with one of the kinds %s; a name without a colon is for people, and nothing drives its switch", strings.Join(d.kinds(), " and "))
	}
	return open(place)
}

// kindForm is how a name begins that says how its switch is driven. Other names, also the
// addresses by which switches call themselves, are for people.
var kindForm = regexp.MustCompile(`^[a-z][a-z0-9+-]{2,}:`)

// Unusable returns what of the switches of a machine's interfaces nothing can drive, by
// fields such as nics[0].switch. It speaks to no switch.
func (d Drivers) Unusable(nics []muster.RegisteredNIC) (problems []muster.Problem) {
	for i, n := range nics {
		if !kindForm.MatchString(n.Switch) {
			continue
		}
		var e *muster.Error
		if _, err := d.Open(n.Switch); errors.As(err, &e) {
			problems = append(problems, e.In(fmt.Sprintf("nics[%d].switch", i)))
		}
	}
	return problems
}

func (d Drivers) kinds() []string {
	var list []string
	for k := range d {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
