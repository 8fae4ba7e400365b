// Package executable writes programs that are started at once.
package executable

import (
	"os"
	"syscall"
)

// Write writes a program as os.WriteFile does. No process is started meanwhile: it would
// inherit the open file between fork and exec, and who starts the program before that exec
// gets ETXTBSY.
func Write(path string, text []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, text, mode)
}
