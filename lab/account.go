package lab

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"github.com/muster-hpc/muster/internal/atomicfile"
)

// Account is the account that the management controllers of a lab have.
const Account = "muster"

// passwordFile holds its password.
const passwordFile = "bmc-password"

// account makes the password of the controllers, where there is none yet.
func (l *Lab) account() error {
	path := filepath.Join(l.dir, passwordFile)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// IPMI allows 20 bytes.
	return atomicfile.Replace(path, []byte(rand.Text()[:20]+"\n"), 0o600)
}
