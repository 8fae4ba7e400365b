package supervisor

import (
	"io"
	"os"
)

// maxComplaints is how much of what QEMU has to say is written down, in bytes: a guest may make it say the same
// for ever.
const maxComplaints = 64 << 10

// complaints writes down what QEMU says, up to a bound, and never makes it wait. It returns the end for QEMU, which the
// caller closes, and what is closed when all is written.
func complaints(to io.Writer) (*os.File, <-chan struct{}, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.Close()
		_, _ = io.CopyN(to, r, maxComplaints)
		_, _ = io.Copy(io.Discard, r)
	}()
	return w, done, nil
}
