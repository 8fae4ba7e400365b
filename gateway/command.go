package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// A client at the jump door may give one command,
//
//	ticket CLUSTER[.NODE][+PROJECT] [ADDRESS:PORT]
//
// which lets its next connection through the straight door, as a ticket of the API does. The address is from where that will
// come. So people whose keys are on record come by the straight door while the server is away. The answer is JSON.
const ticketCommand = "ticket"

// Statuses of commands.
const (
	ticketRefused = 1   // the reason is on stderr
	noCommand     = 255 // as ssh's own failures
)

// command serves a session channel at the jump door until its command has an answer. An error is from before the channel was
// accepted.
func (c *client) command(ctx context.Context, n ssh.NewChannel) error {
	ch, requests, err := n.Accept()
	if err != nil {
		return nil //nolint:nilerr // the client is gone
	}
	defer ch.Close()
	defer time.AfterFunc(c.s.limits.Handshake, func() { _ = ch.Close() }).Stop()
	for r := range requests {
		switch r.Type {
		case "exec":
			var e struct{ Command string }
			if ssh.Unmarshal(r.Payload, &e) != nil {
				_ = r.Reply(false, nil)
				continue
			}
			_ = r.Reply(true, nil)
			status := uint32(0)
			if err := c.ticket(ctx, ch, e.Command); err != nil {
				c.s.nowhere.Add(1)
				_, _ = fmt.Fprintf(ch.Stderr(), "muster: %s\r\n", sentence(err))
				status = ticketRefused
			}
			exit(ch, status)
			return nil
		case "shell", "subsystem":
			_ = r.Reply(true, nil)
			_, _ = fmt.Fprintf(ch.Stderr(), "muster: %s\r\n", noShell)
			exit(ch, noCommand)
			return nil
		case "pty-req", "env":
			_ = r.Reply(true, nil)
		default:
			_ = r.Reply(false, nil)
		}
	}
	return nil
}

// exit says how a command ended.
func exit(ch ssh.Channel, status uint32) {
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
}

// ticket answers the command that asks for a ticket.
func (c *client) ticket(ctx context.Context, ch ssh.Channel, command string) error {
	target, from, ok := parseTicketCommand(command)
	if !ok {
		return muster.Errorf(muster.EInvalid, "%s", noShell)
	}
	t, err := c.s.Ticket(ctx, muster.DoorTicketRequest{User: c.user, Key: c.key, Target: target, Seen: c.near.address(), Client: from})
	if err != nil {
		return err
	}
	return json.NewEncoder(ch).Encode(wire.Ticket{Address: t.Address, Secret: t.Secret, Node: t.Node, Expires: t.Expires})
}

// longestCommand is more than any target has.
const longestCommand = 512

// parseTicketCommand reads a command that asks for a ticket. False: it is none.
func parseTicketCommand(command string) (target string, from netip.AddrPort, ok bool) {
	words := strings.Split(command, " ")
	if len(command) > longestCommand || len(words) < 2 || len(words) > 3 || words[0] != ticketCommand || words[1] == "" {
		return "", from, false
	}
	if len(words) == 3 {
		var err error
		if from, err = netip.ParseAddrPort(words[2]); err != nil {
			return "", netip.AddrPort{}, false
		}
	}
	return words[1], from, true
}
