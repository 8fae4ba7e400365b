package muster

import (
	"fmt"
	"slices"
	"strings"
)

// Warnings are what an administrator should look at although a machine can be used as it is
// registered: each in one sentence that ends with the cure.
func (r Registration) Warnings() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	change := "muster machine add " + string(r.ID) + " --replace"
	if r.Serial != "" && IsPlaceholder(r.Serial) {
		say("its serial number %.40q is a placeholder of its vendor (%s --serial NUMBER ...)", r.Serial, change)
	}
	messages := 0
	for _, n := range r.NICs {
		if r.Facts != nil && len(r.Facts.NICs) > 0 && !slices.ContainsFunc(r.Facts.NICs, func(f NIC) bool { return sameInterface(f.MAC, n.MAC) }) {
			say("it has no interface %s, which is registered for %s: write the one that it has (%s ...)", n.MAC, n.Use, change)
		}
		if n.Use != UseMessage {
			continue
		}
		messages++
		if n.Switch == "" {
			say("nothing keeps its messages from those of other clusters: no switch port is registered for %s (%s --message-switch S --message-port P ...)", n.MAC, change)
		}
	}
	if messages == 0 {
		say("it can take part in no cluster: no interface is registered for messages (%s --message-mac MAC ...)", change)
	}
	return out
}

// sameInterface reports whether what a machine says of an interface is of the one that is
// registered.
func sameInterface(said, registered string) bool {
	mac, err := ParseMAC(said)
	return strings.EqualFold(said, registered) || err == nil && mac == registered
}
