package configure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/wire"
)

// vital is something on the node that the people of its cluster rely on.
type vital struct {
	name string // of its check
	unit string // of systemd; "" where there is none
	pid  int    // of a process that is always the same one; 0 for none
	// ask makes it answer. nil: that its main process runs is all there is to see.
	ask func(ctx context.Context) error
	// every is how often it is asked, which costs more than a look at its process.
	every time.Duration
	// mend is tried when it is wrong and there is no unit; nil: it can only be told.
	mend func(ctx context.Context) error
}

// How often services are asked. A node that computes must not notice.
const (
	askOften  = 2 * time.Second // reads a small file
	askSeldom = 30 * time.Second
)

// vitals are what this node has, as far as it was started.
func (c *Configurer) vitals(cfg *wire.NodeConfig) []vital {
	list := []vital{
		// First: while it stands still, whoever asks it for another unit waits.
		{name: "systemd", pid: 1, ask: c.systemdAnswers, every: askSeldom, mend: c.continueSystemd},
		{name: "sshd", unit: c.sshUnit(), every: askSeldom, ask: func(ctx context.Context) error { return c.bannerOnce(ctx, ownAddress(cfg)) }},
		// Whoever logs waits for one that stands still: logins, services, jobs.
		{name: "journal", unit: "systemd-journald.service"},
		{name: "disk", ask: c.diskHasRoom, every: askOften},
	}
	if len(cfg.Hosts) > 1 {
		list = append(list, vital{name: networkCheck, every: askOften,
			ask:  func(context.Context) error { return c.linkIsUp(ownAddress(cfg)) },
			mend: func(ctx context.Context) error { return c.raiseLink(ctx, ownAddress(cfg)) }})
	}
	if len(cfg.Users) > 0 {
		list = append(list, vital{name: "home", every: askSeldom, ask: func(context.Context) error {
			return accessible(c.files.at("/home"))
		}})
	}
	if c.keepsTime(cfg) {
		list = append(list, vital{name: "clock", unit: clockUnit})
	}
	if cfg.Slurm == nil {
		return list
	}
	list = append(list, vital{name: "munge", unit: mungeUnit, ask: c.mungeOnce, every: askSeldom})
	if c.started("slurmd") {
		list = append(list, vital{name: "slurmd", unit: "slurmd.service", every: askSeldom,
			ask: func(ctx context.Context) error { return c.slurmdAnswers(ctx, cfg) }})
	}
	if cfg.Head && c.started("slurmctld") {
		list = append(list, vital{name: "slurmctld", unit: controllerUnit, ask: c.controllerAnswers, every: askSeldom})
	}
	if cfg.Head && cfg.Slurm.Accounting && c.started("accounting") {
		units := databaseUnits()
		list = append(list,
			vital{name: "database", unit: units[0], ask: c.databaseAnswers, every: askSeldom},
			vital{name: "slurmdbd", unit: units[1], every: askSeldom, ask: func(ctx context.Context) error { return c.accepts(ctx, ownAddress(cfg), portSlurmdbd) }})
	}
	return list
}

// networkCheck is the check of the interface that a cluster's messages take.
const networkCheck = "message network"

// systemdAnswers makes process 1 answer: in whatever state the system is, it says so.
func (c *Configurer) systemdAnswers(ctx context.Context) error {
	text, err := c.run.Run(ctx, "", "systemctl", "is-system-running")
	if strings.TrimSpace(text) != "" {
		return nil
	}
	return err
}

// continueSystemd undoes a stop of process 1.
func (c *Configurer) continueSystemd(context.Context) error {
	if c.o.Root != "" { // a test's node has no systemd
		return nil
	}
	return unix.Kill(1, unix.SIGCONT)
}

// bannerOnce asks sshd once who it is.
func (c *Configurer) bannerOnce(ctx context.Context, address string) error {
	conn, err := c.dial(ctx, "tcp", net.JoinHostPort(address, portSSH))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	return readBanner(conn)
}

func (c *Configurer) accepts(ctx context.Context, address, port string) error {
	conn, err := c.dial(ctx, "tcp", net.JoinHostPort(address, port))
	if err != nil {
		return err
	}
	return conn.Close()
}

// mungeOnce makes a credential and reads it back.
func (c *Configurer) mungeOnce(ctx context.Context) error {
	credential, err := c.run.Run(ctx, "", "munge", "-n")
	if err == nil {
		_, err = c.run.Run(ctx, credential, "unmunge", "-n")
	}
	return err
}

// slurmdAnswers asks this node's slurmd, which needs no slurmctld for that. The kernel
// accepts connections for one that hangs, too; older releases do not find the name of a
// node that comes and goes.
func (c *Configurer) slurmdAnswers(ctx context.Context, cfg *wire.NodeConfig) error {
	if release(cfg.Slurm) < trialRelease {
		return c.accepts(ctx, ownAddress(cfg), portSlurmd)
	}
	_, err := c.run.Run(ctx, "", "scontrol", "show", "slurmd")
	return err
}

func (c *Configurer) controllerAnswers(ctx context.Context) error {
	text, err := c.run.Run(ctx, "", "scontrol", "ping")
	if err == nil && !strings.Contains(text, " UP") {
		err = errors.New("it is down")
	}
	return err
}

// databaseAnswers reads the greeting of the database: it sends one to whoever connects.
func (c *Configurer) databaseAnswers(ctx context.Context) error {
	conn, err := c.dial(ctx, "unix", c.files.at("/run/mysqld/mysqld.sock"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, err = io.ReadFull(conn, make([]byte, 4))
	return err
}

// linkOf is the interface that has an address.
func linkOf(address string) (string, error) {
	own, err := netip.ParseAddr(address)
	if err != nil {
		return "", err
	}
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == own {
				return i.Name, nil
			}
		}
	}
	return "", fmt.Errorf("no interface has the address %s", address)
}

// linkIsUp looks whether the interface with the node's address has a carrier.
func (c *Configurer) linkIsUp(address string) error {
	if c.o.Root != "" { // a test's node has no interfaces
		return nil
	}
	name, err := linkOf(address)
	if err != nil {
		return err
	}
	state, err := os.ReadFile(filepath.Join("/sys/class/net", name, "operstate"))
	if err != nil {
		return err
	}
	if s := strings.TrimSpace(string(state)); s == "down" || s == "lowerlayerdown" || s == "notpresent" {
		return fmt.Errorf("%s is %s", name, s)
	}
	return nil
}

// raiseLink switches the interface on, if that is all that it lacks.
func (c *Configurer) raiseLink(ctx context.Context, address string) error {
	name, err := linkOf(address)
	if err != nil {
		return err
	}
	_, err = c.run.Run(ctx, "", "ip", "link", "set", "dev", name, "up")
	return err
}
