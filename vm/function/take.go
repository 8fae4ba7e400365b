package function

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"
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
	unlock, err := h.lock(f.Address)
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
	override, err := h.override(f.Address)
	if err != nil {
		return err
	}
	if driver == Driver || override != "" {
		return &InUseError{f, fmt.Sprintf("its driver is %q and driver_override %q", driver, override)}
	}
	name, err := h.busy(f.Address)
	if err != nil {
		return err
	}
	if name != "" {
		return &InUseError{f, fmt.Sprintf("the host's interface %s is up", name)}
	}
	if _, err := os.Lstat(h.device(f.Address, "reset")); err != nil {
		return fmt.Errorf("the virtual function %s of %s cannot be reset, so nobody could have it after another: %w", f.Address, f.Card, err)
	}
	if _, err := os.Lstat(h.Dir + "/bus/pci/drivers/" + Driver); err != nil {
		return fmt.Errorf("the host's kernel has no driver %s (modprobe %s): %w", Driver, Driver, err)
	}
	return nil
}

func (h Host) take(t Taken) error {
	if err := h.unbind(t.Address); err != nil {
		return err
	}
	g, err := t.Guard()
	if err != nil {
		return err
	}
	if err := h.guard(t.Function, g); err != nil {
		return err
	}
	if err := h.write(h.device(t.Address, "driver_override"), Driver); err != nil {
		return fmt.Errorf("reserve the virtual function %s for %s: %w", t.Address, Driver, err)
	}
	if err := h.write(h.Dir+"/bus/pci/drivers_probe", t.Address); err != nil {
		return fmt.Errorf("give the virtual function %s to %s: %w", t.Address, Driver, err)
	}
	driver, err := h.DriverOf(t.Address)
	if err == nil && driver != Driver {
		err = fmt.Errorf("the virtual function %s has the driver %q, not %s", t.Address, driver, Driver)
	}
	return err
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
	if _, err := os.Stat(h.device(t.Address)); errors.Is(err, os.ErrNotExist) {
		return nil // the host was started since, or the card has fewer: functions are made anew
	}
	unlock, err := h.lock(t.Address)
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
	override, err := h.override(t.Address)
	if err != nil {
		return false, err
	}
	if driver != Driver && override == "" { // nobody has it, and cleaning it again does no harm; or the host
		name, err := h.busy(t.Address)
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
	if err := h.unbind(t.Address); err != nil {
		return err
	}
	if err := h.write(h.device(t.Address, "driver_override"), ""); err != nil {
		return fmt.Errorf("end the reservation of the virtual function %s: %w", t.Address, err)
	}
	if o, err := h.override(t.Address); err != nil || o != "" {
		return errors.Join(err, fmt.Errorf("the virtual function %s is still reserved for %q", t.Address, o))
	}
	if err := h.write(h.device(t.Address, "reset"), "1"); err != nil {
		return fmt.Errorf("reset the virtual function %s: %w", t.Address, err)
	}
	return h.guard(t.Function, released())
}

// unbind takes a device from its driver.
func (h Host) unbind(address string) error {
	driver, err := h.DriverOf(address)
	if err != nil || driver == "" {
		return err
	}
	if err := h.write(h.device(address, "driver", "unbind"), address); err != nil {
		return fmt.Errorf("take the virtual function %s from %s: %w", address, driver, err)
	}
	if driver, err = h.DriverOf(address); err == nil && driver != "" {
		err = fmt.Errorf("the virtual function %s still has the driver %s", address, driver)
	}
	return err
}

// override is the driver that a device is reserved for; "": any.
func (h Host) override(address string) (string, error) {
	s, err := text(h.device(address, "driver_override"))
	if s == "(null)" {
		s = ""
	}
	return s, err
}

// lock keeps others who use this package from a function.
func (h Host) lock(address string) (unlock func(), err error) {
	f, err := os.Open(h.device(address, "driver_override"))
	if err != nil {
		return nil, fmt.Errorf("there is no virtual function %s: %w", address, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
