package function

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
)

// Taken is a function that was taken, or was about to be.
type Taken struct {
	Function
	MAC  string `json:"mac"`
	VLAN int    `json:"vlan"`
	// Done: it is taken. Otherwise that is what was to be done next.
	Done bool `json:"done"`
}

// Guard is what the function is held to while it is taken.
func (t Taken) Guard() (Guard, error) {
	mac, err := net.ParseMAC(t.MAC)
	return Guard{MAC: mac, VLAN: t.VLAN, SpoofCheck: true}, err
}

// InUseError says that a function has another user.
type InUseError struct {
	Function
	By string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("the virtual function %s of %s is in use: %s", e.Address, e.Card, e.By)
}

// Take takes a function for a virtual machine with this MAC, in this VLAN. Note keeps what it is given, before and
// after the change; what is in it has to be given back. If it fails, everything is given back.
func (h Host) Take(f Function, mac net.HardwareAddr, vlan int, note func(*Taken) error) error {
	unlock, err := h.Lock(f.Address)
	if err != nil {
		return err
	}
	defer unlock()
	if err := h.free(f); err != nil {
		return err
	}
	t := Taken{Function: f, MAC: mac.String(), VLAN: vlan}
	if err := note(&t); err != nil {
		return err
	}
	if err = h.take(t); err == nil {
		t.Done = true
		err = note(&t)
	}
	if err == nil {
		return nil
	}
	if undo := h.give(t); undo != nil {
		return errors.Join(err, undo) // the note stays
	}
	return errors.Join(err, note(nil))
}

// free reports, as an error, why a function cannot be taken.
func (h Host) free(f Function) error {
	driver, err := h.DriverOf(f.Address)
	if err != nil {
		return err
	}
	override, err := h.Override(f.Address)
	if err != nil {
		return err
	}
	if driver == Driver || override != "" {
		return &InUseError{f, fmt.Sprintf("its driver is %q and driver_override %q", driver, override)}
	}
	name, err := h.Up(f.Address)
	if err != nil {
		return err
	}
	if name != "" {
		return &InUseError{f, fmt.Sprintf("the host's interface %s is up", name)}
	}
	if err := h.Resets(f.Address); err != nil {
		return fmt.Errorf("the virtual function %s of %s cannot be reset, so nobody could have it after another: %w", f.Address, f.Card, err)
	}
	if !h.HasDriver(Driver) {
		return fmt.Errorf("the host's kernel has no driver %s (modprobe %s)", Driver, Driver)
	}
	return nil
}

func (h Host) take(t Taken) error {
	if err := h.Unbind(t.Address); err != nil {
		return err
	}
	g, err := t.Guard()
	if err != nil {
		return err
	}
	if err := h.guard(t.Function, g); err != nil {
		return err
	}
	return h.Bind(t.Address, Driver)
}

// guard sets what a function is held to, and reads it back.
func (h Host) guard(f Function, want Guard) error {
	s, err := h.settings(f.Card)
	if err != nil {
		return err
	}
	if err := s.Set(f.Index, want); err != nil {
		return err
	}
	got, err := s.Get(f.Index)
	if err == nil && !got.equal(want) {
		err = fmt.Errorf("the card %s says of its function %d: %s, and not %s", f.Card, f.Index, got, want)
	}
	return err
}

// GuardOf is what the card holds a function to now.
func (h Host) GuardOf(f Function) (Guard, error) {
	s, err := h.settings(f.Card)
	if err != nil {
		return Guard{}, err
	}
	return s.Get(f.Index)
}

// Give gives back what was taken, as clean as a function can be: without a driver, reset, without a MAC and a VLAN, each
// read back. Nobody may use it any more. It may be repeated.
func (h Host) Give(t Taken) error {
	if _, err := os.Stat(h.Device(t.Address)); errors.Is(err, os.ErrNotExist) {
		return nil // the host was started since, or the card has fewer: functions are made anew
	}
	unlock, err := h.Lock(t.Address)
	if err != nil {
		return err
	}
	defer unlock()
	if !t.Done {
		mine, err := h.mine(t)
		if err != nil || !mine {
			return err
		}
	}
	return h.give(t)
}

// mine reports whether a function that was to be taken next was not taken by another since: whoever takes one sets
// its MAC before its driver.
func (h Host) mine(t Taken) (bool, error) {
	driver, err := h.DriverOf(t.Address)
	if err != nil {
		return false, err
	}
	override, err := h.Override(t.Address)
	if err != nil {
		return false, err
	}
	if driver != Driver && override == "" { // nobody has it, and cleaning it again does no harm; or the host
		name, err := h.Up(t.Address)
		return name == "", err
	}
	want, err := t.Guard()
	if err != nil {
		return false, err
	}
	got, err := h.GuardOf(t.Function)
	return slices.Equal(got.MAC, want.MAC), err
}

func (h Host) give(t Taken) error {
	if err := h.Unbind(t.Address); err != nil {
		return err
	}
	if err := h.Unreserve(t.Address); err != nil {
		return err
	}
	if err := h.Reset(t.Address); err != nil {
		return err
	}
	return h.guard(t.Function, released())
}
