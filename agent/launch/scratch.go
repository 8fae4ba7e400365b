package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// scratchPrefix begins the name of every folder that is made for a launch, so that
// no order can have anything else removed.
const scratchPrefix = ".muster-ms-"

// scratch makes a folder for the account where users' folders are. Users cannot
// write there: nobody can have put a link in its place.
func (l *Launcher) scratch(path string) error {
	if !goodScratch(path) {
		return muster.Errorf(muster.EInvalid, "%q is not a directory for a launch", path)
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return l.own(path)
}

func goodScratch(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && strings.HasPrefix(filepath.Base(path), scratchPrefix)
}

// unscratch removes the folder with what the launch wrote.
func (l *Launcher) unscratch(path string, end *wire.LaunchEnd) {
	if !goodScratch(path) {
		return
	}
	if err := os.RemoveAll(path); err != nil && end.Error == "" {
		end.Error = "what it wrote cannot be removed: " + err.Error()
	}
}
