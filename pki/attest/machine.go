package attest

import (
	"crypto/rand"
	"errors"
	"os"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// TPM is a machine's TPM with the two keys that it shows. Its methods may be
// called by one goroutine at a time.
type TPM struct {
	via         transport.TPM
	close       func() error
	endorsement handle
	attestation handle
}

// handle is a key that is loaded in the TPM.
type handle struct {
	at     tpm2.TPMHandle
	name   tpm2.TPM2BName
	public []byte
}

// Devices are where the kernel shows a TPM 2.0: with its resource manager, which
// keeps programs out of each other's way, and without.
func Devices() []string { return []string{"/dev/tpmrm0", "/dev/tpm0"} }

// Open opens the TPM of this machine and makes its keys, which takes a tenth of a
// second to some seconds. ENotFound: it has none. Close it.
func Open() (*TPM, error) {
	for _, name := range Devices() {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, muster.Errorf(muster.EUnavailable, "the TPM at %s cannot be opened", name).Wrap(err)
		}
		t, err := Use(transport.FromReadWriter(f))
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		t.close = f.Close
		return t, nil
	}
	return nil, muster.Errorf(muster.ENotFound, "this machine has no TPM 2.0").
		WithHint("switch it on in the firmware's settings")
}

// Use makes the keys in a TPM that is reached in another way.
func Use(via transport.TPM) (*TPM, error) {
	t := &TPM{via: via}
	unique := make([]byte, 32)
	if _, err := rand.Read(unique); err != nil {
		return nil, err
	}
	var err error
	if t.endorsement, err = t.make(tpm2.ECCEKTemplate); err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "the TPM makes no endorsement key").
			WithHint("clear the TPM in the firmware's settings").Wrap(err)
	}
	if t.attestation, err = t.make(attestationTemplate(unique)); err != nil {
		_ = t.Close()
		return nil, muster.Errorf(muster.EUnavailable, "the TPM makes no attestation key").
			WithHint("clear the TPM in the firmware's settings").Wrap(err)
	}
	return t, nil
}

// make makes a key of the endorsement hierarchy: the same template gives the same
// key as long as nobody replaces the TPM's seed.
func (t *TPM) make(template tpm2.TPMTPublic) (handle, error) {
	r, err := tpm2.CreatePrimary{PrimaryHandle: tpm2.TPMRHEndorsement, InPublic: tpm2.New2B(template)}.Execute(t.via)
	if err != nil {
		return handle{}, err
	}
	return handle{at: r.ObjectHandle, name: r.Name, public: tpm2.Marshal(r.OutPublic)}, nil
}

// Shown is what the machine shows of its TPM.
func (t *TPM) Shown() wire.BootTPM {
	return wire.BootTPM{Endorsement: t.endorsement.public, Attestation: t.attestation.public}
}

// Answer makes the TPM open a challenge, for the program with this key in this
// boot. EForbidden: it was made for another TPM, or is not as it was made.
func (t *TPM) Answer(c wire.BootChallenge, boot string, key []byte) ([]byte, error) {
	r, err := tpm2.ActivateCredential{
		ActivateHandle: tpm2.NamedHandle{Handle: t.attestation.at, Name: t.attestation.name},
		KeyHandle: tpm2.AuthHandle{
			Handle: t.endorsement.at, Name: t.endorsement.name,
			Auth: tpm2.Policy(tpm2.TPMAlgSHA256, 16, endorsementPolicy),
		},
		CredentialBlob: tpm2.TPM2BIDObject{Buffer: c.Credential},
		Secret:         tpm2.TPM2BEncryptedSecret{Buffer: c.Secret},
	}.Execute(t.via)
	if err != nil {
		return nil, muster.Errorf(muster.EForbidden, "the TPM does not open the server's challenge").
			WithHint("it was made for another TPM: enrol this machine again if its board was exchanged").Wrap(err)
	}
	return answer(r.CertInfo.Buffer, boot, key), nil
}

// endorsementPolicy is how the key's template says that it is used: by who may use
// the endorsement hierarchy.
func endorsementPolicy(via transport.TPM, session tpm2.TPMISHPolicy, nonce tpm2.TPM2BNonce) error {
	_, err := tpm2.PolicySecret{AuthHandle: tpm2.TPMRHEndorsement, PolicySession: session, NonceTPM: nonce}.Execute(via)
	return err
}

// Close lets the TPM forget the keys.
func (t *TPM) Close() error {
	var errs []error
	for _, h := range []*handle{&t.attestation, &t.endorsement} {
		if h.at != 0 {
			_, err := tpm2.FlushContext{FlushHandle: h.at}.Execute(t.via)
			errs = append(errs, err)
			h.at = 0
		}
	}
	if t.close != nil {
		errs = append(errs, t.close())
		t.close = nil
	}
	return errors.Join(errs...)
}
