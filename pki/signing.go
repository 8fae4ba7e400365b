package pki

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
	"github.com/muster-hpc/muster/internal/document"
)

const signingFile = "certificates.json"

// Signing holds the key that signs performance certificates, and the public
// halves of those that did before: what they signed must be verified for as
// long as it is kept. It is safe for concurrent use.
type Signing struct {
	path  string
	clock muster.Clock

	mu   sync.Mutex
	key  ed25519.PrivateKey
	ring certificate.Ring
}

// signingState is the file. One file holds everything, so that it changes as a
// whole. The private key belongs to the one key that is neither retired nor
// compromised; those of the others are gone.
type signingState struct {
	Private string              `json:"private"` // base64 of PKCS #8
	Keys    []muster.SigningKey `json:"keys"`
}

const signingDoc document.Kind[signingState] = "signing-keys/1"

// String says nothing about the key.
func (s *Signing) String() string { return "signing key " + s.Public().ID()[:16] }

// GoString is String: %#v prints no key either.
func (s *Signing) GoString() string { return s.String() }

// OpenSigning opens the signing key kept in dir, and makes it (0600) if there
// is none. It never replaces a file that is there.
//
// Errors: EInvalid if others can read dir or the key, ECorrupt if the file is
// not what was written, EConflict if a program of another version wrote it.
func OpenSigning(dir string, clock muster.Clock) (*Signing, error) {
	if clock == nil {
		clock = muster.SystemClock{}
	}
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	s := &Signing{path: filepath.Join(dir, signingFile), clock: clock}
	err := s.load()
	if errors.Is(err, os.ErrNotExist) {
		var first *Signing
		if first, err = s.with(nil); err != nil {
			return nil, err
		}
		var data []byte
		if data, err = first.file(); err != nil {
			return nil, err
		}
		if err = writeNew(s.path, data); err == nil || errors.Is(err, os.ErrExist) {
			err = s.load() // another process may have been quicker
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// load takes the state from the file.
func (s *Signing) load() error {
	data, err := readPrivate(s.path)
	if err != nil {
		return err
	}
	if err := signingDoc.Check(s.path, data); err != nil {
		return err
	}
	key, ring, err := parseSigning(data)
	if err != nil {
		return muster.Errorf(muster.ECorrupt, "the signing key in %s is damaged", s.path).Because(muster.ReasonKeysDamaged).
			WithHint("restore a backup: `muster restore FILE --replace`, or the file from a copy; nothing was started").Wrap(err)
	}
	s.key, s.ring = key, ring
	return nil
}

// parseSigning takes exactly what file wrote. Its errors quote nothing.
func parseSigning(data []byte) (ed25519.PrivateKey, certificate.Ring, error) {
	var none certificate.Ring
	state, err := signingDoc.Decode("it", data)
	if err != nil {
		return nil, none, errors.New("it is not JSON of the form that was written")
	}
	list, err := json.Marshal(certificate.Ring{Keys: state.Keys})
	if err != nil {
		return nil, none, errors.New("a time cannot be")
	}
	ring, err := certificate.ParseKeys(list)
	if err != nil {
		return nil, none, err
	}
	if len(ring.Keys) != len(state.Keys) {
		return nil, none, errors.New("a key stands twice")
	}
	der, err := base64.StdEncoding.Strict().DecodeString(state.Private)
	if err != nil {
		return nil, none, errors.New("the private key is not base64")
	}
	k, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, none, errors.New("the private key cannot be read") // the cause might quote it
	}
	key, ok := k.(ed25519.PrivateKey)
	if !ok {
		return nil, none, errors.New("the private key is not of type Ed25519")
	}
	if again, err := x509.MarshalPKCS8PrivateKey(key); err != nil || !bytes.Equal(again, der) {
		return nil, none, errors.New("the private key is not what was written")
	}
	public, err := certificate.NewPublicKey(key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, none, err
	}
	for i, k := range ring.Keys {
		present := k.Until.IsZero() && k.Compromised.IsZero()
		if last := i == len(ring.Keys)-1; present != last || (last && k.ID != public.ID()) {
			return nil, none, errors.New("the private key is not that of the last public key")
		}
	}
	return key, ring, nil
}

// file is the state as it is written.
func (s *Signing) file() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		return nil, err
	}
	data, err := signingDoc.Encode(&signingState{base64.StdEncoding.EncodeToString(der), s.ring.Keys})
	if err != nil {
		return nil, err
	}
	if data = append(data, '\n'); len(data) > maxFile {
		return nil, muster.Errorf(muster.EConflict, "%s has no room for another key", s.path).
			WithHint("so many changes of keys are a mistake; keep a copy of the file and take the oldest public keys out")
	}
	return data, nil
}

// with is a state with a fresh key after the given ones.
func (s *Signing) with(before []muster.SigningKey) (*Signing, error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, keyDefect(err)
	}
	k, err := certificate.NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	keys := append(slices.Clip(before), certificate.NewKey(k, s.now()))
	return &Signing{path: s.path, clock: s.clock, key: key, ring: certificate.Ring{Keys: keys}}, nil
}

// now is in whole seconds, as certificates are.
func (s *Signing) now() time.Time { return s.clock.Now().UTC().Truncate(time.Second) }

// Public is the key that signs now.
func (s *Signing) Public() certificate.PublicKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := certificate.NewPublicKey(s.key.Public().(ed25519.PublicKey))
	if err != nil {
		return certificate.PublicKey{} // of no key: there always is one
	}
	return k
}

// Ring lists all public keys, the present one last: what others need to verify.
func (s *Signing) Ring() certificate.Ring {
	s.mu.Lock()
	defer s.mu.Unlock()
	return certificate.Ring{Keys: slices.Clone(s.ring.Keys)}
}

// Sign puts a certificate into its envelope. EConflict if the clock was set
// back to before the key was made: nobody would believe the certificate.
func (s *Signing) Sign(c muster.Certificate) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if present := s.ring.Keys[len(s.ring.Keys)-1]; c.Made.Before(present.From.Add(-certificate.Skew)) {
		return nil, muster.Errorf(muster.EConflict, "the certificate %s says that it was made before its key was, on %s", c.ID, present.From.Format(time.RFC3339)).
			WithHint("check the clock of this server")
	}
	return certificate.Sign(c, s.key)
}

// Rotate makes a new key and puts the present one away: its private half is
// destroyed, its public half verifies what it signed until now.
func (s *Signing) Rotate() (certificate.PublicKey, error) {
	s.mu.Lock()
	err := s.rotate(s.ring.Keys)
	s.mu.Unlock()
	return s.Public(), err
}

// Compromised notes that others may have a key: nothing that it signed is
// believed any more. The present key is replaced, too. ENotFound for a key that
// is not of this server.
func (s *Signing) Compromised(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.Clone(s.ring.Keys)
	i := slices.IndexFunc(keys, func(k muster.SigningKey) bool { return k.ID == id })
	if i < 0 {
		return muster.Errorf(muster.ENotFound, "this server has no signing key %s", id).Because(muster.ReasonNoSuchKey).WithHint("its keys are known by their fingerprints, sha256:...")
	}
	if !keys[i].Compromised.IsZero() {
		return nil
	}
	keys[i].Compromised = s.now()
	if i == len(keys)-1 {
		return s.rotate(keys)
	}
	return s.write(&Signing{path: s.path, clock: s.clock, key: s.key, ring: certificate.Ring{Keys: keys}})
}

// rotate puts a fresh key after the given ones, of which the last ends now.
func (s *Signing) rotate(keys []muster.SigningKey) error {
	keys = slices.Clone(keys)
	last := &keys[len(keys)-1]
	if last.Until = s.now(); last.Until.Before(last.From) {
		last.Until = last.From // the clock was set back
	}
	next, err := s.with(keys)
	if err != nil {
		return err
	}
	return s.write(next)
}

// write makes a state this one. If that fails the file reports which holds: a key
// must not sign after its end was written.
func (s *Signing) write(next *Signing) error {
	data, err := next.file()
	if err != nil {
		return err
	}
	if err := replace(s.path, data); err != nil {
		return errors.Join(err, s.load())
	}
	s.key, s.ring = next.key, next.ring
	return nil
}
