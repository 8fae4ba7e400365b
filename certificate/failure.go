package certificate

import "github.com/muster-hpc/muster"

// Reason says for programs why a certificate is not to be believed. The set
// only grows.
type Reason string

// Reasons.
const (
	NotJSON        Reason = "not-json"        // the bytes are no JSON text
	Malformed      Reason = "malformed"       // JSON, and not a certificate
	TooNew         Reason = "too-new"         // a form that this program does not know
	UnknownKey     Reason = "unknown-key"     // signed by a key that was not given
	KeyCompromised Reason = "key-compromised" // others may have the key
	KeyRetired     Reason = "key-retired"     // made after its key was put away
	KeyNotYet      Reason = "key-not-yet"     // made before its key was
	Altered        Reason = "altered"         // not the bytes that were signed
	NotYetValid    Reason = "not-yet-valid"   // made in the future
	Expired        Reason = "expired"
	Superseded     Reason = "superseded"   // another certificate took its place
	NodeMissing    Reason = "node-missing" // a node's certificate was not given
	NodeDiffers    Reason = "node-differs" // a node's certificate is not the one that was named
)

// Failure is why a certificate is not to be believed. It wraps a *muster.Error.
type Failure struct {
	Reason Reason
	Err    *muster.Error
}

// Error is the message for people.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap gives the *muster.Error.
func (f *Failure) Unwrap() error { return f.Err }

// code is the class of a reason: with it the command line chooses its exit
// status.
func (r Reason) code() muster.Code {
	switch r {
	case NotJSON, Malformed, TooNew:
		return muster.EInvalid
	case UnknownKey, NodeMissing:
		return muster.ENotFound
	case KeyCompromised, KeyRetired, KeyNotYet:
		return muster.EForbidden
	case NotYetValid, Expired, Superseded:
		return muster.EConflict
	case Altered, NodeDiffers:
	}
	return muster.ECorrupt
}

func fail(r Reason, hint, format string, args ...any) *Failure {
	return &Failure{Reason: r, Err: muster.Errorf(r.code(), format, args...).WithHint("%s", hint)}
}
