package bootapi

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki/attest"
	"github.com/muster-hpc/muster/wire"
)

// Config of a Server. Book is required.
type Config struct {
	Registry Registry
	// Shown is told which endorsement key a machine shows, before anything proves it:
	// also when it is not the enrolled one, and the machine is refused. It must be
	// quick. May be nil.
	Shown func(id muster.MachineID, endorsement []byte)
	Clock muster.Clock
	Log   *slog.Logger
}

// Server answers check-ins. It is safe for concurrent use.
type Server struct {
	c Config

	mu         sync.Mutex
	challenges map[string]*challenge // by number of the boot
}

// challenge is what a machine's TPM was asked, and whether it answered.
type challenge struct {
	*attest.Challenge
	key     []byte // of the program that was asked
	proven  bool
	expires time.Time
}

// A challenge is forgotten after a while; so many can be open at once.
const (
	challengeTime = 10 * time.Minute
	maxChallenges = 1 << 16
)

// New makes a Server.
func New(c Config) (*Server, error) {
	if c.Registry == nil {
		return nil, errors.New("bootdesk: a book is required")
	}
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Shown == nil {
		c.Shown = func(muster.MachineID, []byte) {}
	}
	return &Server{c: c, challenges: map[string]*challenge{}}, nil
}

// CheckIn answers one hello that came from an address. Its key was proven to be
// that of who sent it. A refusal tells the machine, and whoever stands before it,
// what to do; it tells nothing that only the right machine may know.
func (d *Server) CheckIn(ctx context.Context, h *wire.BootCheckIn, from netip.Addr) (*wire.BootReply, error) {
	b, err := d.c.Registry.Boot(ctx, h.Boot)
	if err != nil {
		if muster.CodeOf(err) == muster.ENotFound {
			return nil, muster.Errorf(muster.ENotFound, "no boot of this number is known").Because(muster.ReasonNoSuchBoot).
				WithHint("start the machine again over the network").Wrap(err)
		}
		return nil, err
	}
	if err := d.compare(&b, h, from); err != nil {
		d.c.Log.Warn("boot check-in rejected", "boot", b.Number, "machine", b.Machine, "from", from, "error", err)
		if sameWire(&b, h, from) {
			d.c.Registry.Refused(ctx, b.Number, err)
		}
		return nil, err
	}
	if h.TPM != nil && b.Machine != "" {
		d.c.Shown(b.Machine, slices.Clone(h.TPM.Endorsement))
	}
	reply := &wire.BootReply{Protocol: wire.BootProtocol, Now: d.c.Clock.Now().UTC()}
	trust, ask, err := d.trust(&b, h)
	if err != nil {
		d.c.Log.Warn("TPM attestation failed", "boot", b.Number, "machine", b.Machine, "from", from, "error", err)
		d.c.Registry.Refused(ctx, b.Number, err)
		return nil, err
	}
	if ask != nil {
		reply.Challenge = ask
		return reply, nil
	}
	if b.Kind == wire.BootImage && rank(trust) < rank(b.Least) {
		err := muster.Errorf(muster.EForbidden, "no seed is given to a machine that is trusted as %s: at least %s is asked for", trust, b.Least).Because(muster.ReasonUntrustedMachine).
			WithHint("%s", b.cure())
		d.c.Registry.Refused(ctx, b.Number, err)
		return nil, err
	}
	if len(b.Key) > 0 && subtle.ConstantTimeCompare(b.Key, h.Key) != 1 {
		reply.Wait, err = d.again(ctx, &b, h, trust)
		return reply, err
	}
	if err := d.c.Registry.Heard(ctx, b.Number, h, trust); err != nil {
		return nil, err
	}
	switch {
	case h.Done != nil:
		reply.Task = &wire.BootTask{Kind: wire.BootOff, Machine: b.Machine}
	case h.Failure != nil: // it is noted; the machine knows from its order how to go on
		reply.Wait = b.Wait
	case b.Wait != nil:
		reply.Wait = b.Wait
	default:
		reply.Task, err = d.order(ctx, &b, h, trust)
	}
	return reply, err
}

// sameWire reports whether a check-in comes from where the boot's machine is: what others say
// in its name is not told as the machine's.
func sameWire(b *Boot, h *wire.BootCheckIn, from netip.Addr) bool {
	return slices.Contains(b.MACs, h.MAC) && from.IsValid() && from.Unmap() == b.Address.Unmap()
}

// compare reports what of a check-in does not agree with what is known.
func (d *Server) compare(b *Boot, h *wire.BootCheckIn, from netip.Addr) error {
	another := "another machine uses the number of this boot: start this one again over the network"
	switch {
	case !b.Expires.IsZero() && d.c.Clock.Now().After(b.Expires):
		return muster.Errorf(muster.EConflict, "this boot has expired").Because(muster.ReasonAttemptOver).WithHint("start the machine again over the network")
	case !slices.Contains(b.MACs, h.MAC):
		return muster.Errorf(muster.EForbidden, "this boot is that of a machine with another MAC than %s", h.MAC).Because(muster.ReasonOtherMachine).WithHint("%s", another)
	case !from.IsValid() || from.Unmap() != b.Address.Unmap():
		return muster.Errorf(muster.EForbidden, "this boot has leased another address than %s", from).Because(muster.ReasonOtherMachine).
			WithHint("the machine must ask from the address that it got by DHCP, without translation on the way")
	case differ(muster.CanonicalSerial(b.Serial), muster.CanonicalSerial(h.Serial)):
		return muster.Errorf(muster.EForbidden, "the machine has serial number %.64q, and %.64q was approved", h.Serial, b.Serial).Because(muster.ReasonOtherMachine).
			WithHint("approve it again if its board was exchanged")
	case b.UUID != "" && h.UUID != "" && !strings.EqualFold(b.UUID, h.UUID):
		return muster.Errorf(muster.EForbidden, "the machine has UUID %.64q, and %.64q was approved", h.UUID, b.UUID).Because(muster.ReasonOtherMachine).
			WithHint("approve it again if its board was exchanged")
	}
	return nil
}

// differ reports whether two values that identify contradict each other.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// again is for another program than the one that has the order: the machine was started
// again, or somebody speaks in its name. It gets nothing of that order. Where a TPM
// vouched for the first program, it must for this one before it is even noted.
func (d *Server) again(ctx context.Context, b *Boot, h *wire.BootCheckIn, trust muster.Trust) (*wire.BootWait, error) {
	if rank(trust) < rank(b.Trust) {
		return nil, secondAsker()
	}
	d.c.Log.Info("machine rebooted during task", "boot", b.Number, "machine", b.Machine)
	wait, err := d.c.Registry.Restarted(ctx, b.Number, h)
	if err == nil && wait == nil {
		wait = &wire.BootWait{Reason: "this machine was started again", Next: muster.Duration(500 * time.Millisecond)}
	}
	return wait, err
}

func secondAsker() error {
	return muster.Errorf(muster.EConflict, "the task of this boot was given to another program already").Because(muster.ReasonGivenAlready).
		WithHint("if the machine was started again, it must be told to boot again, too; otherwise somebody speaks in its name")
}

// trust reports how far the machine is trusted, or what its TPM is asked first.
func (d *Server) trust(b *Boot, h *wire.BootCheckIn) (muster.Trust, *wire.BootChallenge, error) {
	without := muster.TrustNetwork
	if b.Port {
		without = muster.TrustPort
	}
	if len(b.Endorsement) == 0 || h.TPM == nil {
		return without, nil, nil
	}
	now := d.c.Clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.challenges[b.Number]
	mine := c != nil && now.Before(c.expires) && subtle.ConstantTimeCompare(c.key, h.Key) == 1
	switch {
	case mine && c.proven:
		if !attest.Same(b.Endorsement, h.TPM.Endorsement) {
			break // it shows another one now
		}
		return muster.TrustTPM, nil, nil
	case mine && len(h.TPM.Answer) > 0:
		if err := c.Verify(h.TPM.Answer, h.Key); err != nil {
			delete(d.challenges, b.Number)
			return "", nil, err
		}
		c.proven = true
		return muster.TrustTPM, nil, nil
	}
	made, err := attest.New(b.Endorsement, *h.TPM, b.Number)
	if err != nil {
		return "", nil, err
	}
	d.forget(now)
	d.challenges[b.Number] = &challenge{Challenge: made, key: slices.Clone(h.Key), expires: now.Add(challengeTime)}
	return "", &made.Sent, nil
}

// forget drops challenges that are old, and any when there are too many: a
// machine whose challenge is gone gets another one.
func (d *Server) forget(now time.Time) {
	if len(d.challenges) < maxChallenges/2 {
		return
	}
	for number, c := range d.challenges {
		if now.After(c.expires) || len(d.challenges) >= maxChallenges {
			delete(d.challenges, number)
		}
	}
}

// order binds the order to who asks, and hands it out.
func (d *Server) order(ctx context.Context, b *Boot, h *wire.BootCheckIn, trust muster.Trust) (*wire.BootTask, error) {
	bound, err := d.c.Registry.Bind(ctx, b.Number, h.Key, trust)
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(bound, h.Key) != 1 {
		return nil, secondAsker()
	}
	o, err := d.c.Registry.Task(ctx, b.Number, h)
	if err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, muster.Errorf(muster.EInternal, "the task for this machine makes no sense").Wrap(err)
	}
	if o.Kind == wire.BootImage && b.Kind != wire.BootImage {
		// What was weighed is not what would be given.
		return nil, muster.Errorf(muster.EConflict, "the task for this machine has just changed").Because(muster.ReasonChangedMeanwhile).WithHint("ask again")
	}
	return o, nil
}
