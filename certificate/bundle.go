package certificate

import (
	"github.com/muster-hpc/muster/certificate/canonical"
)

// MaxBundle bounds the bytes of a bundle.
const MaxBundle = 256 << 20

// Split takes a bundle apart: envelopes one after the other, each on a line or
// laid out for people. The error is a *Failure.
func Split(bundle []byte) ([][]byte, error) {
	if len(bundle) > MaxBundle {
		return nil, fail(Malformed, "give the certificates in several files", "this is too long for a bundle of certificates: %d bytes", len(bundle))
	}
	var out [][]byte
	for {
		text, rest, err := canonical.Next(bundle)
		if err != nil {
			return nil, fail(NotJSON, "get the certificate again from where it came, or give another file",
				"this is not JSON, or was cut off or altered: certificate %d of the file, %v", len(out)+1, err)
		}
		if text == nil {
			break
		}
		out = append(out, text)
		bundle = rest
	}
	if len(out) == 0 {
		return nil, fail(Malformed, "give a file that holds certificates", "this holds no certificate")
	}
	return out, nil
}
