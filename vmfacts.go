package muster

import (
	"slices"
	"strings"
	"time"
)

// VMFacts are how a virtual machine is set up, as its host reads it back after each start.
type VMFacts struct {
	At time.Time `json:"at"`
	// KVM: the host's processor executes it. Otherwise QEMU emulates one: nothing that is measured in it
	// says anything of speed.
	KVM   bool `json:"kvm"`
	Tuned bool `json:"tuned"`
	// Settings are those of its plan that its host can see, and those that could not be made.
	Settings []VMFact `json:"settings"`
}

// VMFact is a setting of a virtual machine with what was found.
type VMFact struct {
	Name  string `json:"name"` // as of VMSetting
	Value string `json:"value"`
	Found string `json:"found"`
	Read  string `json:"read,omitempty"` // where
	Holds bool   `json:"holds"`
	// Cure is what to do about one that does not hold.
	Cure string `json:"cure,omitempty"`
}

// VMCondition is what of a virtual machine changes the figures that are measured in it.
type VMCondition struct {
	// KVM: the host's processor executes it; otherwise QEMU emulates one.
	KVM   bool `json:"kvm"`
	Tuned bool `json:"tuned"`
	// Missed names the settings of its plan that do not hold.
	Missed []string `json:"missed,omitempty"`
}

// Condition is what of the facts changes figures; nil of nothing.
func (f *VMFacts) Condition() *VMCondition {
	if f == nil {
		return nil
	}
	c := &VMCondition{KVM: f.KVM, Tuned: f.Tuned}
	for _, s := range f.Missed() {
		c.Missed = append(c.Missed, s.Name)
	}
	return c
}

// Worse is what holds of two together: what one misses, both miss. Either may be nil.
func (c *VMCondition) Worse(d *VMCondition) *VMCondition {
	if c == nil {
		return d
	}
	if d == nil {
		return c
	}
	out := VMCondition{KVM: c.KVM && d.KVM, Tuned: c.Tuned && d.Tuned, Missed: slices.Clone(c.Missed)}
	for _, name := range d.Missed {
		if !slices.Contains(out.Missed, name) {
			out.Missed = append(out.Missed, name)
		}
	}
	return &out
}

// String is the condition for people.
func (c *VMCondition) String() string {
	if c == nil {
		return ""
	}
	text := map[bool]string{true: "tuned", false: "untuned"}[c.Tuned]
	if !c.KVM {
		text += ", emulated"
	}
	if len(c.Missed) > 0 {
		text += ", without " + strings.Join(c.Missed, ", ")
	}
	return text
}

// Missed are the settings that do not hold.
func (f *VMFacts) Missed() []VMFact {
	if f == nil {
		return nil
	}
	var list []VMFact
	for _, s := range f.Settings {
		if !s.Holds {
			list = append(list, s)
		}
	}
	return list
}
