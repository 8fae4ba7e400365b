package pci

import (
	"errors"
	"fmt"
	"os"
)

// Unbind takes a device from its driver.
func (h Host) Unbind(address string) error {
	driver, err := h.DriverOf(address)
	if err != nil || driver == "" {
		return err
	}
	if err := h.Change(h.Device(address, "driver", "unbind"), address); err != nil {
		return fmt.Errorf("take the device %s from %s: %w", address, driver, err)
	}
	if driver, err = h.DriverOf(address); err == nil && driver != "" {
		err = fmt.Errorf("the device %s still has the driver %s", address, driver)
	}
	return err
}

// Bind reserves a device that has no driver for one, and gives it to that.
func (h Host) Bind(address, driver string) error {
	if !h.HasDriver(driver) {
		return fmt.Errorf("the host's kernel has no driver %s (modprobe %s)", driver, driver)
	}
	if err := h.Change(h.Device(address, "driver_override"), driver); err != nil {
		return fmt.Errorf("reserve the device %s for %s: %w", address, driver, err)
	}
	if err := h.Change(h.Dir+"/bus/pci/drivers_probe", address); err != nil {
		return fmt.Errorf("give the device %s to %s: %w", address, driver, err)
	}
	got, err := h.DriverOf(address)
	if err == nil && got != driver {
		err = fmt.Errorf("the device %s has the driver %q, not %s", address, got, driver)
	}
	return err
}

// Unreserve ends the reservation of a device: any driver may have it.
func (h Host) Unreserve(address string) error {
	if err := h.Change(h.Device(address, "driver_override"), ""); err != nil {
		return fmt.Errorf("end the reservation of the device %s: %w", address, err)
	}
	if o, err := h.Override(address); err != nil || o != "" {
		return errors.Join(err, fmt.Errorf("the device %s is still reserved for %q", address, o))
	}
	return nil
}

// Reset resets a device that has no driver.
func (h Host) Reset(address string) error {
	if err := h.Change(h.Device(address, "reset"), "1"); err != nil {
		return fmt.Errorf("reset the device %s: %w", address, err)
	}
	return nil
}

// Resets reports, as an error, that a device cannot be reset.
func (h Host) Resets(address string) error {
	_, err := os.Lstat(h.Device(address, "reset"))
	return err
}
