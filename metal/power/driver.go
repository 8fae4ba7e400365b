package power

import (
	"context"
	"time"
)

// State is what is known of a machine's power.
type State string

// States.
const (
	On      State = "on"
	Off     State = "off"
	Unknown State = "unknown" // nobody can tell, or it is between the two
)

// Proof is how a state is known.
type Proof string

// Proofs, the strongest last. Only ProofController and ProofPort are good for
// a fence; and a human who was asked about this very machine, which is no
// reading.
const (
	ProofNone       Proof = ""           // an order was given, nobody looked
	ProofAttested   Proof = "attested"   // somebody said so: a human, or a program that the site does not vouch for
	ProofSilence    Proof = "silence"    // the machine says nothing and its link is down
	ProofPort       Proof = "port"       // its switch ports are closed and were read back
	ProofController Proof = "controller" // its controller measures the power
)

// Reading is one look at a machine's power.
type Reading struct {
	State State
	Proof Proof
	Text  string // in words: "the controller says on"
}

// Abilities say what a driver can do for its machine, and what it can prove.
type Abilities struct {
	// NetworkBoot: On makes the firmware boot from the network once. Without
	// it the firmware's own order must have the network first.
	NetworkBoot bool
	Off         bool // it can switch off
	State       bool // it can tell on from off
	// ProvesOff: a State of off means that the machine has no power.
	ProvesOff bool
}

// Driver switches one machine. Its methods may be called one at a time. They
// keep to the deadline of their context, and return
//
//	EUNAVAILABLE  no answer, or not now: worth another try
//	ETIMEOUT      the deadline passed: it may have happened, or not
//	ECORRUPT      an answer that makes no sense
//	EUNAUTH       the account, the password or the certificate is wrong
//	EFORBIDDEN    the account may not do this
//	EINVALID      the controller cannot do this, or the address is wrong
//	ENOTFOUND     the controller has no such system
//	ECONFLICT     what was set did not stay set
type Driver interface {
	Abilities() Abilities
	// On makes the next boot, and only that one, come from the network, and
	// switches on. The network boot is read back where it can be. A machine
	// that is on already stays as it is.
	On(ctx context.Context) error
	// Off takes the power away at once, without asking the machine's system.
	Off(ctx context.Context) error
	// State looks.
	State(ctx context.Context) (Reading, error)
	// Close ends the driver's sessions. A later call opens one again.
	Close(ctx context.Context) error
}

// closeTime bounds the good manners of ending a session.
const closeTime = 3 * time.Second
