package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/muster-hpc/muster"
)

// readUpTo reads a file of so many bytes at most; - is standard input.
func (a *app) readUpTo(name string, most int64, what string) ([]byte, error) {
	in := a.env.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, cannotRead(name, what, err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, cannotRead(name, what, err)
	}
	if int64(len(data)) > most {
		return nil, muster.Errorf(muster.EInvalid, "%s is too long for %s", name, what).Because(muster.ReasonTooLarge).WithHint("check which file was given")
	}
	return data, nil
}

func cannotRead(name, what string, err error) error {
	why := ""
	var path *fs.PathError
	if errors.As(err, &path) {
		why = ": " + path.Err.Error()
	}
	return muster.Errorf(muster.EInvalid, "cannot read %s%s", name, why).Because(muster.ReasonFileUnreadable).WithHint("give the path of %s", what).Wrap(err)
}
