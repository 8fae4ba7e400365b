package configure

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// report notes the result of a check and makes an error of a bad one.
func report(r Reporter, name string, err error, hint string) error {
	if err == nil {
		r.Check(wire.Check{Name: name, OK: true})
		return nil
	}
	text, _ := muster.Explain(err)
	r.Check(wire.Check{Name: name, Text: text})
	return muster.Errorf(muster.EInternal, "check %s: %v", name, err).WithHint("%s", hint).Wrap(err)
}

// checkNames looks every node up, both ways, in the table that the system's
// resolver reads.
func (c *Configurer) checkNames(cfg *wire.NodeConfig, r Reporter) error {
	text, err := c.files.read("/etc/hosts")
	if err == nil {
		err = namesIn(text, cfg)
	}
	return report(r, "names", err, "look at /etc/hosts of the node")
}

func namesIn(hosts string, cfg *wire.NodeConfig) error {
	byName, byAddress := map[string]string{}, map[string]string{}
	for line := range strings.Lines(hosts) {
		p := strings.Fields(line)
		for i, name := range p {
			if i == 0 || strings.HasPrefix(p[0], "#") {
				continue
			}
			byName[name] = p[0]
			if i == 1 {
				byAddress[p[0]] = name
			}
		}
	}
	for _, h := range cfg.Hosts {
		full := h.Name
		if cfg.Domain != "" {
			full += "." + cfg.Domain
		}
		if byName[h.Name] != h.Address || byName[full] != h.Address || byAddress[h.Address] != full {
			return fmt.Errorf("%s does not resolve to %s and back", full, h.Address)
		}
	}
	return nil
}

// checkHome looks whether /home is there and can be written to. Only the head
// makes anything in it.
func (c *Configurer) checkHome(cfg *wire.NodeConfig, r Reporter) error {
	if len(cfg.Users) == 0 {
		return nil
	}
	return report(r, "home", accessible(c.files.at("/home")), "is the volume of /home mounted?")
}

// checkSSH waits until sshd says who it is.
func (c *Configurer) checkSSH(ctx context.Context, cfg *wire.NodeConfig, r Reporter) error {
	err := c.sshBanner(ctx, ownAddress(cfg))
	if err == nil {
		// The boot may have put it there after the files were written.
		err = c.files.remove("/run/nologin")
	}
	if err == nil {
		r.Stage("sshd")
	}
	return report(r, "sshd", err, "on the node: sshd -t; systemctl status ssh")
}

func (c *Configurer) sshBanner(ctx context.Context, address string) error {
	conn, err := c.connect(ctx, address, portSSH)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// The banner is all that is asked; closing then is no failed login. Where a processor is
	// emulated on a busy host, sshd takes many seconds to be loaded.
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return readBanner(conn)
}

func readBanner(conn net.Conn) error {
	text, err := bufio.NewReaderSize(conn, 256).ReadSlice('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(text), "SSH-2.0-") {
		return fmt.Errorf("port 22 does not speak SSH")
	}
	return nil
}

// checkMunge makes a credential and reads it back.
func (c *Configurer) checkMunge(ctx context.Context, r Reporter) error {
	err := c.mungeAnswers(ctx)
	return report(r, "munge", err, "on the node: systemctl status munge")
}

func (c *Configurer) mungeAnswers(ctx context.Context) error {
	for {
		credential, err := "", fmt.Errorf("no socket")
		if c.files.exists("/run/munge/munge.socket.2") {
			credential, err = c.run.Run(ctx, "", "munge", "-n")
		}
		if err == nil {
			_, err = c.run.Run(ctx, credential, "unmunge", "-n")
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-c.clock.After(pollEvery):
		}
	}
}
