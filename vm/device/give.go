package device

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-hpc/muster/vm/pci"
)

// Give takes a device back from a virtual machine that has ended: it is reset, and without a driver and a reservation,
// each read back. A disk has still to be erased. It may be repeated.
func (h Host) Give(d Held) error {
	if err := h.same(d); err != nil {
		return err
	}
	unlock, err := h.Lock(d.Address)
	if err != nil {
		return err
	}
	defer unlock()
	return h.give(d)
}

func (h Host) give(d Held) error {
	driver, err := h.DriverOf(d.Address)
	if err != nil {
		return err
	}
	if driver != "" && driver != pci.VFIO { // the host was started since, or who erased it was killed
		if err := h.use(d.Address); err != nil {
			return err
		}
	}
	if err := h.Unbind(d.Address); err != nil {
		return err
	}
	if err := h.Unreserve(d.Address); err != nil {
		return err
	}
	return h.Reset(d.Address)
}

// Clean leaves nothing of a tenant's on a device that was given back, as far as that can be, and says what was done and
// seen. Only a disk that is the one of the note is erased. It may be repeated.
func (h Host) Clean(ctx context.Context, d Held) (string, error) {
	if err := h.same(d); err != nil {
		return "", err
	}
	unlock, err := h.Lock(d.Address)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := h.give(d); err != nil {
		return "", err
	}
	if d.Disk == nil {
		return "it was reset, and has no driver and no reservation; nobody proves what its firmware keeps", nil
	}
	if err := h.hide(d.Address); err != nil { // the host was started since
		return "", err
	}
	proof, err := h.erase(ctx, d)
	if err != nil {
		return "", errors.Join(err, h.give(d))
	}
	return proof, h.give(d)
}

// erase has the host's driver take a disk, and erases it if it is the one of the note.
func (h Host) erase(ctx context.Context, d Held) (string, error) {
	if err := h.Bind(d.Address, nvmeDriver); err != nil {
		return "", err
	}
	if err := h.Unreserve(d.Address); err != nil {
		return "", err
	}
	now, err := h.appear(ctx, d)
	if err != nil {
		return "", err
	}
	if err := h.use(d.Address); err != nil {
		return "", err
	}
	var proofs []string
	for _, n := range now.Namespaces {
		proof, err := h.Disks.Erase(ctx, filepath.Join(h.Dev, now.names[n.ID]), n.Size)
		if err != nil {
			return "", fmt.Errorf("erase namespace %d of the disk with the serial number %s: %w", n.ID, d.Disk.Serial, err)
		}
		proofs = append(proofs, fmt.Sprintf("namespace %d: %s", n.ID, proof))
	}
	return fmt.Sprintf("the disk with the serial number %s, of firmware %s as before: %s; it was reset, and has no driver and no reservation", d.Disk.Serial, d.Disk.Firmware, strings.Join(proofs, "; ")), nil
}

// appear waits until a disk is as it was before anybody had it.
func (h Host) appear(ctx context.Context, d Held) (seen, error) {
	why := ""
	for end := time.Now().Add(h.Appear); ; {
		now, err := h.disk(d.Address)
		if err == nil {
			if why = now.differs(*d.Disk); why == "" {
				return now, nil
			}
		} else {
			why = err.Error()
		}
		if !time.Now().Before(end) {
			return seen{}, &notError{"it is not erased, because it is not as it was before a tenant had it: " + why, h.lostCure(d) + "; or have it as it was again, with nvme-cli"}
		}
		select {
		case <-ctx.Done():
			return seen{}, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Release gives a device that is clean back to the driver that it had before it was taken.
func (h Host) Release(d Held) error {
	if !d.Clean {
		return fmt.Errorf("the device %s is not clean", d.Address)
	}
	there, err := h.There(d.Address)
	if err != nil || !there {
		return errors.Join(err, h.show(d.Address))
	}
	unlock, err := h.Lock(d.Address)
	if err != nil {
		return err
	}
	defer unlock()
	if err := h.show(d.Address); err != nil {
		return err
	}
	driver, err := h.DriverOf(d.Address)
	if err != nil || d.Driver == "" {
		return err
	}
	if driver == "" {
		if err := h.Bind(d.Address, d.Driver); err != nil {
			return errors.Join(err, h.Unreserve(d.Address))
		}
	}
	if o, err := h.Override(d.Address); err != nil || o != d.Driver { // of another since
		return err
	}
	return h.Unreserve(d.Address)
}
