package attest

import (
	"bytes"

	"github.com/google/go-tpm/tpm2"

	"github.com/muster-hpc/muster"
)

// attestationTemplate is that of the key for which credentials are made: it signs
// what the TPM says and nothing else. unique makes it another key each time.
func attestationTemplate(unique []byte) tpm2.TPMTPublic {
	return tpm2.TPMTPublic{
		Type:    tpm2.TPMAlgECC,
		NameAlg: tpm2.TPMAlgSHA256,
		ObjectAttributes: tpm2.TPMAObject{
			FixedTPM: true, FixedParent: true, SensitiveDataOrigin: true, UserWithAuth: true,
			NoDA: true, Restricted: true, SignEncrypt: true,
		},
		Parameters: tpm2.NewTPMUPublicParms(tpm2.TPMAlgECC, &tpm2.TPMSECCParms{
			Scheme: tpm2.TPMTECCScheme{
				Scheme:  tpm2.TPMAlgECDSA,
				Details: tpm2.NewTPMUAsymScheme(tpm2.TPMAlgECDSA, &tpm2.TPMSSigSchemeECDSA{HashAlg: tpm2.TPMAlgSHA256}),
			},
			CurveID: tpm2.TPMECCNistP256,
		}),
		Unique: tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, &tpm2.TPMSECCPoint{
			X: tpm2.TPM2BECCParameter{Buffer: unique},
			Y: tpm2.TPM2BECCParameter{Buffer: make([]byte, 32)},
		}),
	}
}

// endorsementKey reads the public part of an endorsement key and refuses what a
// TPM would not use as one. ECC on P-256 and RSA of 2048 bits are known.
func endorsementKey(b []byte) (*tpm2.TPMTPublic, error) {
	p, err := public(b)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the TPM's endorsement key cannot be read").Wrap(err)
	}
	a := p.ObjectAttributes
	if !a.FixedTPM || !a.FixedParent || !a.Restricted || !a.Decrypt || a.SignEncrypt || !a.SensitiveDataOrigin {
		return nil, muster.Errorf(muster.EInvalid, "the TPM's endorsement key is a key for something else").
			WithHint("enrol the machine again; if that does not help, its TPM is not a TPM 2.0")
	}
	return p, nil
}

// attestationName reads the public part of the other key and gives its name, to
// which a credential is bound. The TPM checks that it holds the key of that name.
func attestationName(b []byte) ([]byte, error) {
	p, err := public(b)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the TPM's attestation key cannot be read").Wrap(err)
	}
	a := p.ObjectAttributes
	if !a.FixedTPM || !a.FixedParent || !a.Restricted || !a.SignEncrypt || a.Decrypt || !a.SensitiveDataOrigin {
		return nil, muster.Errorf(muster.EInvalid, "the TPM's attestation key is a key for something else").
			WithHint("start the machine again with the initramfs of this server")
	}
	name, err := tpm2.ObjectName(p)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the TPM's attestation key has no name").Wrap(err)
	}
	return name.Buffer, nil
}

// maxPublic is more than any public area of the keys above.
const maxPublic = 1024

// public reads a TPM2B_PUBLIC to its end.
func public(b []byte) (*tpm2.TPMTPublic, error) {
	if len(b) > maxPublic {
		return nil, muster.Errorf(muster.EInvalid, "%d bytes are too many", len(b))
	}
	sized, err := tpm2.Unmarshal[tpm2.TPM2BPublic](b)
	if err != nil {
		return nil, err
	}
	p, err := sized.Contents()
	if err != nil {
		return nil, err
	}
	// What is compared byte by byte must have one form only.
	if again := tpm2.Marshal(tpm2.New2B(*p)); !bytes.Equal(again, b) {
		return nil, muster.Errorf(muster.EInvalid, "it is written in another form than a TPM writes it")
	}
	return p, nil
}
