package agent

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// hibernate does as an order says, each once. The agent says nothing meanwhile. It goes on as another
// boot, or says why the machine could not.
func (a *agent) hibernate(o *wire.HibernateOrder) {
	if o == nil || o.ID == a.hibernated {
		return
	}
	a.hibernated = o.ID
	err := o.Check()
	if err == nil && a.Hibernate == nil {
		err = muster.Errorf(muster.EConflict, "this node is not a machine that can hibernate")
	}
	var join wire.HostJoin
	if err == nil {
		a.Log.Info("writing the memory to a disk of this machine", "pause", o.ID)
		join, err = a.Hibernate(a.ctx, o.Memory, func() {
			short, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), goodbyeAtMost)
			defer cancel()
			a.lastWord(short, wire.GoodbyeHibernate)
		})
	}
	if err != nil {
		a.Log.Warn("hibernation failed", "error", err)
		a.out.check(wire.Check{Name: wire.CheckHibernated, Text: o.ID + ": " + Describe(err)})
		a.out.soon()
		return
	}
	select {
	case a.joins <- join:
		<-a.ctx.Done()
	case <-a.ctx.Done():
	}
}
