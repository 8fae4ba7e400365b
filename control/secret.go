package control

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
)

// secrets are what a new cluster keeps from everybody else. They are made
// before the transaction that writes them, which so is short.
type secrets struct {
	values map[string][]byte
	hosts  []string // private host keys, handed out in the order of the nodes
}

func newSecrets(w parsedRequest) (*secrets, error) {
	s := &secrets{values: map[string][]byte{}}
	for _, name := range []string{muster.SecretHostCA, muster.SecretUserCA} {
		authority, err := pki.NewSSHAuthority()
		if err != nil {
			return nil, err
		}
		s.values[name] = authority.Marshal()
	}
	munge := make([]byte, 128)
	password := make([]byte, 16)
	_, _ = rand.Read(munge)
	_, _ = rand.Read(password)
	s.values[muster.SecretMungeKey] = munge
	s.values[muster.SecretDBPassword] = []byte(hex.EncodeToString(password))
	if w.image != nil && w.image.UserRoot {
		key, _, err := pki.NewHostKey()
		if err != nil {
			return nil, err
		}
		s.values[muster.SecretRootKey] = []byte(key)
	}
	for range w.spec.TotalNodes() {
		key, _, err := pki.NewHostKey()
		if err != nil {
			return nil, err
		}
		s.hosts = append(s.hosts, key)
	}
	return s, nil
}

func (s *secrets) put(sys *store.Tx, id muster.ClusterID, plan muster.Plan) error {
	for name, value := range s.values {
		if err := sys.PutSecret(id, name, value); err != nil {
			return err
		}
	}
	for i, a := range plan.Assign {
		if err := sys.PutSecret(id, muster.SecretHostKey(a.Node), []byte(s.hosts[i])); err != nil {
			return err
		}
	}
	return nil
}
