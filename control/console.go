package control

import (
	"context"
	"io"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// ConsoleFunc connects to the console of a machine; see provider.Provider.
type ConsoleFunc func(ctx context.Context, machine muster.Machine, shell bool) (io.ReadWriteCloser, error)

// NodeConsole connects to the console of the machine that fills a node. Who
// sees the cluster may read; a shell is root's, so it is for administrators,
// and for users of clusters on which users are root. Each that is opened leaves an audit line,
// before anything is read of it or written to it.
func (s *Service) NodeConsole(ctx context.Context, who muster.Actor, ref, name string, shell bool) (io.ReadWriteCloser, error) {
	var m muster.Machine
	var cluster muster.ClusterID
	var node string
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		c, err := tx.FindCluster(ref)
		if err != nil {
			return err
		}
		if shell && !who.Admin && (!s.userRoot(c) || !slices.Contains(c.Spec.Users, who.Name)) {
			return muster.Errorf(muster.EForbidden, "you may read the consoles of %s; a shell there is for administrators", c.Name).
				WithHint("leave --shell away, or log in as yourself: muster ssh %s", c.ID)
		}
		nodes, err := tx.Nodes(c.ID)
		if err != nil {
			return err
		}
		n, err := pickNode(c, nodes, name)
		if err != nil {
			return err
		}
		cluster, node = c.ID, n.Name
		m, err = filler(tx, c, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.openConsole(ctx, who, m, shell, func(tx *store.Tx, text string) error {
		return tx.Note("node", node, cluster, text)
	})
}

// MachineConsole connects an administrator to the console of a machine,
// whoever has it.
func (s *Service) MachineConsole(ctx context.Context, who muster.Actor, id muster.MachineID, shell bool) (io.ReadWriteCloser, error) {
	if !who.Admin {
		return nil, muster.Errorf(muster.EForbidden, "consoles of machines are for administrators").
			WithHint("name a node of your cluster: muster console CLUSTER NODE")
	}
	var m muster.Machine
	err := s.Store.View(ctx, who, func(tx *store.Tx) (err error) {
		if m, err = tx.Machine(id); muster.CodeOf(err) == muster.ENotFound {
			return s.unknownMachine(tx, id)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.openConsole(ctx, who, m, shell, func(tx *store.Tx, text string) error {
		return tx.Note("machine", string(id), m.Cluster, text)
	})
}

func consoleText(id muster.MachineID, shell bool) string {
	if shell {
		return "root shell on " + string(id) + " opened"
	}
	return "console of " + string(id) + " read"
}

// openConsole opens a console and notes it. One that is not noted is closed unused.
func (s *Service) openConsole(ctx context.Context, who muster.Actor, m muster.Machine, shell bool, note func(tx *store.Tx, text string) error) (io.ReadWriteCloser, error) {
	if s.Console == nil {
		return nil, muster.Errorf(muster.EUnavailable, "machine %s has no console", m.ID)
	}
	c, err := s.Console(ctx, m, shell)
	if err != nil {
		return nil, err
	}
	if err := s.Store.Update(ctx, who, func(tx *store.Tx) error { return note(tx, consoleText(m.ID, shell)) }); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}
