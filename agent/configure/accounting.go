package configure

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// databaseUnits are what sacct asks, in the order in which they start.
var databaseUnits = [...]string{"mariadb.service", "slurmdbd.service"}

// accounting starts the database of past jobs once the cluster is usable, so
// that no user waits for it. What happened before is sent to it by slurmctld,
// which keeps it meanwhile.
func (c *Configurer) accounting(ctx context.Context, cfg *wire.NodeConfig, r Reporter) {
	select {
	case <-ctx.Done():
		return
	case <-c.clock.After(c.o.AccountingDelay):
	}
	if err := c.systemctl(ctx, "start", databaseUnits[:]...); err != nil {
		_ = report(r, "accounting", err, "")
		return
	}
	err := c.agreeOnID(ctx, cfg)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		c.log.Warn("accounting is not available", "err", err)
	} else {
		r.Stage("accounting")
	}
	_ = report(r, "accounting", err, "")
}

// agreeOnID writes down the number that the database has given the cluster. A
// slurmctld that finds another one in its state does not start again.
func (c *Configurer) agreeOnID(ctx context.Context, cfg *wire.NodeConfig) error {
	name := cfg.Slurm.ClusterName
	query := fmt.Sprintf("SELECT id FROM slurm_acct_db.cluster_table WHERE deleted=0 AND name='%s'", name)
	var last error
	for wait, end := 200*time.Millisecond, c.clock.Now().Add(5*time.Minute); c.clock.Now().Before(end); {
		text, err := c.run.Run(ctx, query, "mariadb", "--batch", "--skip-column-names")
		id, bad := strconv.Atoi(strings.TrimSpace(text))
		if err == nil && bad == nil {
			_, err = c.files.write(slurmState+"/clustername", fmt.Sprintf("%s|%d", name, id), 0o644, "slurm")
			return err
		}
		if last = err; last == nil {
			last = fmt.Errorf("the scheduler has not registered with its database yet")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.clock.After(wait):
		}
		wait = min(2*wait, 2*time.Second)
	}
	return last
}
