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
	return s.openConsole(ctx, who, shell, func(tx *store.Tx) (m muster.Machine, l consoleLine, err error) {
		c, err := tx.FindCluster(ref)
		if err != nil {
			return m, l, err
		}
		if shell {
			if err := s.mayShell(who, c); err != nil {
				return m, l, err
			}
		}
		nodes, err := tx.Nodes(c.ID)
		if err != nil {
			return m, l, err
		}
		n, err := pickNode(c, nodes, name)
		if err != nil {
			return m, l, err
		}
		m, err = filler(tx, c, n)
		return m, consoleLine{"node", n.Name, c.ID}, err
	})
}

// mayShell refuses a root shell on a cluster's nodes.
func (s *Service) mayShell(who muster.Actor, c muster.Cluster) error {
	if who.Admin || s.userRoot(c) && slices.Contains(c.Spec.Users, who.Name) {
		return nil
	}
	return muster.Errorf(muster.EForbidden, "you may read the consoles of %s; a shell there is for administrators", c.Name).Because(muster.ReasonAdminOnly).
		WithHint("leave --shell away, or log in as yourself: muster ssh %s", c.ID)
}

// MachineConsole connects an administrator to the console of a machine,
// whoever has it.
func (s *Service) MachineConsole(ctx context.Context, who muster.Actor, id muster.MachineID, shell bool) (io.ReadWriteCloser, error) {
	if !who.Admin {
		return nil, muster.Errorf(muster.EForbidden, "consoles of machines are for administrators").Because(muster.ReasonAdminOnly).
			WithHint("name a node of your cluster: muster console CLUSTER NODE")
	}
	return s.openConsole(ctx, who, shell, func(tx *store.Tx) (muster.Machine, consoleLine, error) {
		m, err := tx.Machine(id)
		if muster.CodeOf(err) == muster.ENotFound {
			err = s.unknownMachine(tx, id)
		}
		return m, consoleLine{"machine", string(id), m.Cluster}, err
	})
}

// consoleLine is of what the history means that a console was opened.
type consoleLine struct {
	kind    muster.AuditKind
	object  string
	cluster muster.ClusterID
}

func consoleText(id muster.MachineID, shell bool) string {
	if shell {
		return "root shell on " + string(id) + " opened"
	}
	return "console of " + string(id) + " read"
}

// openConsole opens the console of the machine that find finds, and notes it. find is asked
// again once it is open: a machine may have come to another cluster meanwhile. One that is not
// noted is closed unused.
func (s *Service) openConsole(ctx context.Context, who muster.Actor, shell bool, find func(*store.Tx) (muster.Machine, consoleLine, error)) (io.ReadWriteCloser, error) {
	var m muster.Machine
	err := s.Store.View(ctx, who, func(tx *store.Tx) (err error) {
		m, _, err = find(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.Console == nil {
		return nil, muster.Errorf(muster.EUnavailable, "machine %s has no console", m.ID).Because(muster.ReasonNoConsole)
	}
	c, err := s.Console(ctx, m, shell)
	if err != nil {
		return nil, err
	}
	err = s.Store.Update(ctx, who, func(tx *store.Tx) error {
		now, l, err := find(tx)
		if err != nil {
			return err
		}
		if now.ID != m.ID || now.Cluster != m.Cluster {
			return muster.Errorf(muster.EConflict, "somebody else got machine %s meanwhile", m.ID).Because(muster.ReasonChangedMeanwhile).WithHint("try again")
		}
		return tx.Note(l.kind, l.object, l.cluster, consoleText(m.ID, shell))
	})
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}
