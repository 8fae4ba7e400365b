package script

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/muster-hpc/muster"
)

// unusable looks whether the program is there and can be run.
func unusable(a muster.PowerAddress) []muster.Problem {
	wrong := func(why muster.Reason, message, hint string) []muster.Problem {
		return []muster.Problem{{Field: "power.address", Reason: why, Message: a.Address + " " + message, Hint: hint}}
	}
	const where = "put the program there, on the server, or write where it is"
	info, err := os.Stat(a.Address)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return wrong(muster.ReasonFileUnreadable, "is not there", where)
	case err != nil:
		return wrong(muster.ReasonFileUnreadable, "cannot be read: "+cause(err), "see that the server may run it")
	case !info.Mode().IsRegular():
		return wrong(muster.ReasonBadValue, "is not a file", where)
	case info.Mode()&0o111 == 0:
		return wrong(muster.ReasonBadValue, "may not be executed", "chmod +x "+a.Address)
	}
	return nil
}

// cause is an error without the operation and the path.
func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err.Error()
}
