package gateway

import (
	"time"

	"github.com/muster-hpc/muster"
)

// opener is a user, and by what they opened something: a key, or a token of the API.
type opener struct {
	user  string
	key   muster.DoorKey
	token string // its ID
}

// commandOnly says to the holder of a certificate with force-command why no door leads anywhere: what is
// done there is not the gateway's, and so it cannot hold anybody to one command.
func (o opener) commandOnly() error {
	if cert := o.key.Certificate; cert != nil && cert.Command {
		return muster.Errorf(muster.EForbidden, "your certificate allows one command only (force-command), and the gateway cannot hold you to that").Because(muster.ReasonNoAccess).
			WithHint("have one made without -O force-command, or use a key")
	}
	return nil
}

// connects says to the holder of a certificate why they get no connection to a node through the jump door or the
// straight one. To the certificate it is a forwarded port of the gateway.
func (o opener) connects(d muster.Door) error {
	if err := o.commandOnly(); err != nil || o.forwards() {
		return err
	}
	return muster.Errorf(muster.EForbidden, "your certificate permits no forwarding of ports, which the %s door is", d).Because(muster.ReasonNoAccess).
		WithHint("have one made with permit-port-forwarding, or log in as CLUSTER+USER")
}

// forwards reports whether the key by which a user came permits forwarding of ports.
func (o opener) forwards() bool { return o.key.Certificate == nil || o.key.Certificate.Forwards }

// over reports whether the certificate by which a user came has ended.
func (o opener) over(now time.Time) bool {
	cert := o.key.Certificate
	return cert != nil && !cert.Ends.IsZero() && !now.Before(cert.Ends)
}
