package image

import (
	"errors"
	"syscall"

	muster "github.com/muster-hpc/muster"
)

// storeError tells people about a failed operation on the store's files.
func storeError(doing string, err error) *muster.Error {
	e := muster.Errorf(muster.EUnavailable, "cannot %s: %v", doing, err).Wrap(err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return e.WithHint("free some space on the disk of the image store, or remove images: muster image remove")
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EROFS):
		return e.WithHint("run as root with a state directory that can be written")
	}
	return e.WithHint("try again; if it stays, look at the disk of the image store")
}
