package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// TPM is the program that emulates one.
const TPM = "swtpm"

// StartTPM starts the TPM whose keys and state are in dir, and returns when it
// answers on socket. It ends when the machine goes off, and with this process.
func StartTPM(ctx context.Context, dir, socket string, log *os.File) (*Running, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	r, err := spawn(TPM, []string{"socket", "--tpm2", "--tpmstate", "dir=" + dir, "--ctrl", "type=unixio,path=" + socket, "--terminate"}, nil, log)
	if err != nil {
		return nil, err
	}
	for end := time.After(10 * time.Second); ; {
		if _, err := os.Stat(socket); err == nil {
			return r, nil
		}
		select {
		case <-r.done:
			return nil, fmt.Errorf("%s ended at once; see %s", TPM, filepath.Base(log.Name()))
		case <-end:
			return nil, errors.Join(fmt.Errorf("%s does not answer", TPM), r.Cut())
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), r.Cut())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
