package bootapi

import (
	"context"
	"net/netip"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Boot is what is known of one boot of one machine.
type Boot struct {
	Number  string
	Machine muster.MachineID // "" while the machine is unknown
	Kind    wire.BootKind    // of the order that it will get
	// MACs are those of the machine. A hello must come from one of them.
	MACs []string
	// Serial and UUID are the machine's; "" when nobody knows them.
	Serial, UUID string
	// Address was leased to the machine's MAC in this boot; a check-in must come
	// from it.
	Address netip.Addr
	// Port: the request for that address came through the machine's own switch
	// port.
	Port bool
	// Endorsement is what was enrolled of the machine's TPM; nil for nothing.
	Endorsement []byte
	// Least is the trust below which no seed is given. "" is network.
	Least muster.Trust
	// Expires is when this boot is too old to be answered. Zero: never.
	Expires time.Time
	// Key is that of the program which the order is bound to; nil before.
	Key []byte
	// Trust is how far that program was trusted.
	Trust muster.Trust
	// Wait is why the machine has to wait now; nil when it is its turn.
	Wait *wire.BootWait
}

// cure says what to do about a machine that is not trusted enough.
func (b Boot) cure() string {
	if b.Least == muster.TrustTPM && len(b.Endorsement) > 0 {
		return "switch its TPM on in its firmware; if it was exchanged or is broken, approve the machine again, or register it with least-trust: network"
	}
	return "enroll the machine's TPM, or configure its switch to add the port to DHCP requests (option 82)"
}

// Registry knows the boots. Its methods are safe for concurrent use.
type Registry interface {
	// Boot returns what is known of a boot. ENotFound: nothing is.
	Boot(ctx context.Context, number string) (Boot, error)
	// Restarted is told that the machine asks with another program than the one that its
	// order belongs to: it was started again. What was believed of it otherwise holds.
	// It returns how long the machine waits; nil: its order is free for the new program.
	Restarted(ctx context.Context, number string, hello *wire.BootCheckIn) (*wire.BootWait, error)
	// Bind commits that the order of a boot belongs to key, and how far the
	// machine is trusted, unless the order belongs to another key already. It
	// returns the key that it belongs to now.
	Bind(ctx context.Context, number string, key []byte, trust muster.Trust) ([]byte, error)
	// Task returns the order of a boot that is bound, for the program that said hello. It is asked again by the
	// same program when an answer was lost, and then returns what is as good as
	// the first one: a token that was redeemed is not good.
	Task(ctx context.Context, number string, hello *wire.BootCheckIn) (*wire.BootTask, error)
	// Heard is told of every hello that was believed: facts, stages, failures and
	// what was done are in it.
	Heard(ctx context.Context, number string, hello *wire.BootCheckIn, trust muster.Trust) error
	// Refused is told why the machine that has the MAC and the address of a boot was
	// refused: an administrator looks for it where the boot is shown.
	Refused(ctx context.Context, number string, why error)
}

// rank orders trusts: more is more.
func rank(t muster.Trust) int {
	switch t {
	case muster.TrustTPM:
		return 3
	case muster.TrustLocal, muster.TrustPort:
		return 2
	case muster.TrustNetwork, "":
		return 1
	}
	return 4 // a least trust that is not known is not reached
}
