package pki

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/muster-hpc/muster"
	"golang.org/x/crypto/ssh"
)

const (
	gatewayFile       = "gateway.pem"
	hostAuthorityFile = "ssh-hosts.pem"
)

// OpenHostAuthority opens the authority of the site that signs the SSH host keys of its doors,
// kept in dir, and makes it (0600) if there is none. It never replaces a file that is there.
//
// Errors: as of OpenGatewayKey.
func OpenHostAuthority(dir string) (SSHAuthority, error) {
	text, err := openHostKey(dir, hostAuthorityFile)
	if err != nil {
		return SSHAuthority{}, err
	}
	a, err := ParseSSHAuthority(text)
	if err != nil {
		return a, muster.Errorf(muster.ECorrupt, "the authority of SSH host keys in %s is damaged", filepath.Join(dir, hostAuthorityFile)).Because(muster.ReasonKeysDamaged).
			WithHint("restore the file from a backup; without one remove it, and users need its new line: muster gateway known-hosts")
	}
	return a, nil
}

// OpenGatewayKey opens the host key of the SSH gateway kept in dir, and makes it (0600) if there
// is none. It never replaces a file that is there.
//
// Errors: EInvalid if others can read dir or the key, ECorrupt if the file is not what was written.
func OpenGatewayKey(dir string) (ssh.Signer, error) {
	text, err := openHostKey(dir, gatewayFile)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil || signer.PublicKey().Type() != ssh.KeyAlgoED25519 {
		return nil, muster.Errorf(muster.ECorrupt, "the gateway's host key in %s is damaged", filepath.Join(dir, gatewayFile)).Because(muster.ReasonKeysDamaged).
			WithHint("restore the file from a backup; without one remove it, and users see another key")
	}
	return signer, nil
}

// openHostKey reads the Ed25519 key in a file of dir, and makes it if there is none.
func openHostKey(dir, name string) ([]byte, error) {
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	text, err := readPrivate(path)
	if errors.Is(err, os.ErrNotExist) {
		key, _, keyErr := NewHostKey()
		if keyErr != nil {
			return nil, keyErr
		}
		if err = writeNew(path, []byte(key)); err == nil || errors.Is(err, os.ErrExist) {
			text, err = readPrivate(path) // another process may have been quicker
		}
	}
	return text, err
}
