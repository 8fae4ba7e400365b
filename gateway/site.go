package gateway

import (
	"context"
	"net"
	"net/netip"

	"github.com/muster-hpc/muster"
	"golang.org/x/crypto/ssh"
)

// Site knows who may go where, and records who went.
type Site interface {
	// GatewayKey finds by which key on record a user comes who offers a key or a certificate. It takes as long
	// for a user who does not exist as for one with another key.
	GatewayKey(ctx context.Context, user string, offered ssh.PublicKey) (muster.DoorKey, error)
	// GatewayEnter finds where a target leads for a user at a door. An error says why it leads nowhere,
	// and what to do, for the user.
	GatewayEnter(ctx context.Context, user string, d muster.Door, t muster.DoorTarget) (muster.DoorWay, error)
	// GatewayDial connects to the SSH port of a node.
	GatewayDial(ctx context.Context, user string, w muster.DoorWay) (net.Conn, error)
	// GatewayNode is the address by which this host reaches a node itself; the zero value: it
	// does not.
	GatewayNode(ctx context.Context, user string, w muster.DoorWay) (netip.Addr, error)
	// GatewaySign certifies a key of the gateway for one session on the node. host is the
	// node's host key.
	GatewaySign(ctx context.Context, user string, w muster.DoorWay, key ssh.PublicKey) (cert *ssh.Certificate, host ssh.PublicKey, err error)
	// GatewayRights reports of each claim why it does not hold any more; nil: it does. A store
	// that cannot answer takes no right away.
	GatewayRights(ctx context.Context, claims []muster.DoorClaim) []error
	// GatewayBegin records a session before anything of it passes; GatewayBytes what passed so
	// far; GatewayEnd its end.
	GatewayBegin(ctx context.Context, s muster.GatewaySession) error
	GatewayBytes(ctx context.Context, list []muster.GatewaySession) error
	GatewayEnd(ctx context.Context, s muster.GatewaySession) error
}
