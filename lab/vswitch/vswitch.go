package vswitch

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/process"
	"github.com/muster-hpc/muster/metal/switches/ovs"
)

// Bridge is the name of the one bridge.
const Bridge = "br0"

// Files of a switch in its directory.
const (
	databaseFile   = "conf.db"
	databaseRecord = "ovsdb-server.json"
	switchRecord   = "ovs-vswitchd.json"
)

// daemonStart is how long a daemon may take until it answers.
const daemonStart = 20 * time.Second

// Config is where a switch lives.
type Config struct {
	Dir string
	Lab string                   // mark of its processes
	In  func(func() error) error // runs a function in the network namespace of its ports
}

// Programs are those that a switch is made of.
func Programs() []string {
	return []string{"ovsdb-server", "ovsdb-tool", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl", "ovs-appctl"}
}

// Open drives the switch in a directory, which runs or not. What it starts for that
// bears the mark of the lab: it is to end with it.
func Open(dir, lab string) *ovs.Switch {
	return ovs.New(ovs.Config{Dir: dir, Bridge: Bridge, Env: []string{process.Marked(lab)}})
}

// Start starts what of the switch does not run, and has it take these devices as
// ports. What it was told before it is told again by its database.
func Start(ctx context.Context, c Config, devices ...string) (*ovs.Switch, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	s, err := c.start(ctx, devices)
	if err != nil && ctx.Err() == nil && !Running(c.Dir) {
		return c.start(ctx, devices) // what was found was about to end
	}
	return s, err
}

func (c Config) start(ctx context.Context, devices []string) (*ovs.Switch, error) {
	if err := c.database(ctx); err != nil {
		return nil, err
	}
	if err := c.daemon(ctx); err != nil {
		return nil, err
	}
	s := Open(c.Dir, c.Lab)
	return s, s.MakeBridge(ctx, devices...)
}

// Running reports whether both processes run.
func Running(dir string) bool {
	for _, r := range []string{databaseRecord, switchRecord} {
		p, err := process.Find(filepath.Join(dir, r))
		if err != nil {
			return false
		}
		p.Close()
	}
	return true
}

// Stop ends both, the switch before its database. It is no error when they do not
// run.
func Stop(ctx context.Context, dir string) error {
	var errs []error
	for _, r := range []string{switchRecord, databaseRecord} {
		p, err := process.Find(filepath.Join(dir, r))
		if errors.Is(err, os.ErrNotExist) || muster.CodeOf(err) == muster.EConflict {
			continue // one that another version wrote down is found by its lab's mark
		}
		if err == nil {
			err = p.Stop(ctx, 2*time.Second)
			p.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// database starts ovsdb-server, with a new database when there is none that is
// whole.
func (c Config) database(ctx context.Context) error {
	file := filepath.Join(c.Dir, databaseFile)
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		// Made beside its place: half a database would stop every start after.
		_ = os.Remove(file + ".new")
		if err := c.tool(ctx, "ovsdb-tool", "create", file+".new", schema); err != nil {
			return err
		}
		if err := os.Rename(file+".new", file); err != nil {
			return err
		}
	}
	socket := filepath.Join(c.Dir, ovs.Database)
	return c.run(ctx, databaseRecord, socket, "ovsdb-server", file, "--remote=punix:"+socket, "--unixctl="+filepath.Join(c.Dir, "ovsdb-server.ctl"), "-vconsole:warn", "-vsyslog:off", "--no-chdir")
}

// schema is what the database of a switch consists of.
const schema = "/usr/share/openvswitch/vswitch.ovsschema"

func (c Config) daemon(ctx context.Context) error {
	db := "unix:" + filepath.Join(c.Dir, ovs.Database)
	// One thread for each of its works is plenty for a lab.
	if err := c.tool(ctx, "ovs-vsctl", "--db="+db, "--no-wait", "--timeout=10", "--", "init",
		"--", "set", "Open_vSwitch", ".", "other_config:n-handler-threads=1", "other_config:n-revalidator-threads=1"); err != nil {
		return err
	}
	return c.run(ctx, switchRecord, filepath.Join(c.Dir, ovs.Control), "ovs-vswitchd", db, "--unixctl="+filepath.Join(c.Dir, ovs.Control), "-vconsole:warn", "-vsyslog:off", "--no-chdir")
}

// run starts a daemon that does not run and waits until it answers on its socket.
func (c Config) run(ctx context.Context, record, socket string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, daemonStart)
	defer cancel()
	log := filepath.Join(c.Dir, args[0]+".log")
	record = filepath.Join(c.Dir, record)
	p, err := process.Find(record)
	found := err == nil
	for {
		if errors.Is(err, os.ErrNotExist) {
			found = false
			// It would hold the socket's or the database's lock.
			if _, err := process.Unrecorded(ctx, c.Lab, args); err != nil {
				return err
			}
			if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			p, err = process.Start(ctx, process.Spec{Args: args, Env: c.env(), Log: log, Record: record, Lab: c.Lab, In: c.In})
		}
		if err != nil {
			return err
		}
		answers, alive := await(ctx, p, socket)
		p.Close()
		switch {
		case answers:
			return nil
		case ctx.Err() != nil:
			return muster.Errorf(muster.ETimeout, "%s does not answer", args[0]).WithHint("see %s", log).Wrap(ctx.Err())
		case alive || !found:
			return muster.Errorf(muster.EUnavailable, "%s ended at once", args[0]).WithHint("see %s", log)
		}
		err = os.ErrNotExist // what was found was about to end
	}
}

// await waits until a process answers on its socket, or has ended.
func await(ctx context.Context, p *process.Process, socket string) (answers, alive bool) {
	for {
		// That the socket is there does not say that somebody listens yet.
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err == nil {
			conn.Close()
			return true, true
		}
		if ctx.Err() != nil || !p.Alive() {
			return false, p.Alive()
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (c Config) env() []string {
	return []string{"OVS_RUNDIR=" + c.Dir, "OVS_DBDIR=" + c.Dir, "OVS_LOGDIR=" + c.Dir, "OVS_SYSCONFDIR=" + c.Dir}
}

func (c Config) tool(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // a program of Open vSwitch
	cmd.Env = append(append(os.Environ(), c.env()...), process.Marked(c.Lab))
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return muster.Errorf(muster.EUnavailable, "%s failed: %.300s", program, out).WithHint("see what is missing: muster lab doctor").Wrap(err)
	}
	return nil
}
