package control

import (
	"context"
	"net/netip"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// GatewayTicket lets the next connection of the actor through the straight door. Who came without
// a token of a user's has none: nothing would end the connection.
func (s *Service) GatewayTicket(ctx context.Context, who muster.Actor, r muster.DoorTicketRequest) (muster.DoorTicket, error) {
	if s.Gateway == nil {
		return muster.DoorTicket{}, muster.Errorf(muster.EUnavailable, "this server has no gateway").Because(muster.ReasonNoGateway).
			WithHint("an administrator starts one with 'muster serve --gateway ADDRESS:PORT'; meanwhile use 'muster ssh'")
	}
	if who.Token == "" {
		return muster.DoorTicket{}, muster.Errorf(muster.EForbidden, "only who came with a token of a user passes the straight door").Because(muster.ReasonNoToken).
			WithHint("set MUSTER_TOKEN; an administrator makes a token with 'muster token create USER'")
	}
	r.User, r.Token = who.Name, who.Token
	return s.Gateway.Ticket(ctx, r)
}

// GatewayNode is the address by which the gateway's host reaches a node itself; the zero value:
// it does not.
func (s *Service) GatewayNode(ctx context.Context, user string, w muster.DoorWay) (netip.Addr, error) {
	who, err := s.gatewayActor(ctx, user)
	if err != nil || s.Routed == nil {
		return netip.Addr{}, err
	}
	var machine muster.Machine
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		c, node, err := s.reach(tx, string(w.Cluster), w.Node)
		if err == nil {
			machine, err = filler(tx, c, node)
		}
		return err
	})
	if err != nil {
		return netip.Addr{}, err
	}
	return s.Routed(machine), nil
}
