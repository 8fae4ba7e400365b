// Package script switches machines by a program of the site: for switched
// sockets, controllers of a maker's own, or a machine room's own tools.
//
// The program is called as
//
//	PROGRAM on|off|state
//
// with the machine's facts in its environment (see docs/operators/power.md) and the
// password, if there is one, on its standard input. It answers by its exit
// status; for state it prints on, off or unknown first. It is killed, with all
// that it started, when its time is over.
package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/siteprogram"
	"github.com/muster-hpc/muster/metal/power"
)

// Maker gives this driver to power.Drivers.
func Maker() power.Maker {
	return power.Maker{New: func(t power.Target, _ power.Deps) (power.Driver, error) { return &driver{t}, nil }, Unusable: unusable}
}

type driver struct{ t power.Target }

// Abilities: the site answers for what its program can.
func (d *driver) Abilities() power.Abilities {
	return power.Abilities{NetworkBoot: true, Off: true, State: true, ProvesOff: d.t.Address.Proves}
}

func (d *driver) On(ctx context.Context) error {
	_, err := d.call(ctx, "on")
	return err
}

func (d *driver) Off(ctx context.Context) error {
	_, err := d.call(ctx, "off")
	return err
}

func (d *driver) State(ctx context.Context) (power.Reading, error) {
	out, err := d.call(ctx, "state")
	if err != nil {
		return power.Reading{}, err
	}
	state, err := parseState(out)
	if err != nil {
		return power.Reading{}, err
	}
	r := power.Reading{State: state, Proof: power.ProofAttested, Text: "the site's program says " + string(state)}
	if d.t.Address.Proves {
		r.Proof = power.ProofController
		r.Text += ", and the site answers for it"
	}
	return r, nil
}

// Close has nothing to close.
func (d *driver) Close(context.Context) error { return nil }

// parseState reads the first word.
func parseState(out []byte) (power.State, error) {
	words := strings.Fields(string(out))
	if len(words) > 0 {
		switch s := power.State(strings.ToLower(words[0])); s {
		case power.On, power.Off, power.Unknown:
			return s, nil
		}
	}
	return power.Unknown, muster.Errorf(muster.ECorrupt, "the site's program did not say on, off or unknown").Because(muster.ReasonControllerNonsense).
		WithHint("it must print one of these words first")
}

// environment holds what the program may know. Nothing of this server's own
// environment gets there.
func (d *driver) environment() []string {
	return append(siteprogram.Environment(),
		"MUSTER_MACHINE="+string(d.t.Machine),
		"MUSTER_RACK="+d.t.Rack,
		"MUSTER_USER="+d.t.Address.User,
		"MUSTER_MACS="+strings.Join(d.t.MACs, " "),
		"MUSTER_BOOT=network", // what on must have it boot from, once
	)
}

// explain makes an error of how the program ended.
func explain(operation string, err error, said string) error {
	if said != "" {
		said = ": " + said
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		hint := "see that it is there and may be executed by this server"
		if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
			return muster.Errorf(muster.EInvalid, "the site's program could not be started").WithHint("%s", hint).Wrap(err)
		}
		return muster.Errorf(muster.EUnavailable, "the site's program could not be run").Because(muster.ReasonControllerUnreachable).WithHint("%s", hint).Wrap(err)
	}
	switch exit.ExitCode() {
	case siteprogram.ExitUnsupported:
		return muster.Errorf(muster.EInvalid, "the site's program cannot do %q%s", operation, said)
	case siteprogram.ExitRefused:
		return muster.Errorf(muster.EUnauth, "the site's program was refused%s", said).Because(muster.ReasonControllerRefuses).WithHint("see the account and the password of the machine's power address")
	case siteprogram.ExitBusy:
		return muster.Errorf(muster.EUnavailable, "the site's program says not now%s", said).Because(muster.ReasonControllerUnreachable)
	case siteprogram.ExitUnknown:
		return muster.Errorf(muster.ENotFound, "the site's program knows no such machine%s", said).Because(muster.ReasonNoSuchMachine)
	}
	return muster.Errorf(muster.EUnavailable, "the site's program failed to switch it %q (%s)%s", operation, fmt.Sprint(exit), said).Because(muster.ReasonControllerUnreachable).
		WithHint("run it by hand as docs/operators/power.md says")
}
