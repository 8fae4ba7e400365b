package measure

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// admit makes a key for one launch. Only the account that measures is let in by it, and
// only into the nodes of one cluster, whose own authority signs it.
func (r *Runner) admit(ctx context.Context, id muster.ClusterID, life time.Duration) (key, certificate string, err error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", err
	}
	var raw []byte
	err = r.c.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		raw, err = tx.Secret(id, muster.SecretUserCA)
		return err
	})
	if err != nil {
		return "", "", err
	}
	authority, err := pki.ParseSSHAuthority(raw)
	if err != nil {
		return "", "", err
	}
	signer, err := ssh.NewPublicKey(public)
	if err != nil {
		return "", "", err
	}
	cert, err := authority.WithClock(r.c.Clock).SignUser(signer, "muster:measuring:"+string(id), []string{wire.ProbeAccount + "@" + string(id)}, life)
	if err != nil {
		return "", "", err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return "", "", err
	}
	return string(pem.EncodeToMemory(block)), pki.Line(cert) + "\n", nil
}
