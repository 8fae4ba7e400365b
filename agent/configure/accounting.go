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
func databaseUnits() []string { return []string{"mariadb.service", "slurmdbd.service"} }

// accountingAgain is how long it takes until a database that did not come is tried
// again: jobs may keep a node busy for long, and past jobs are not lost meanwhile.
const accountingAgain = 30 * time.Second

// accounting starts the database of past jobs once the cluster is usable, so
// that no user waits for it. What happened before is sent to it by slurmctld,
// which keeps it meanwhile. It tries until it succeeds, or ctx ends.
func (c *Configurer) accounting(ctx context.Context, cfg *wire.NodeConfig, r Reporter) {
	for wait := c.o.AccountingDelay; ; wait = accountingAgain {
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(wait):
		}
		err := c.account(ctx, cfg)
		if ctx.Err() != nil {
			return
		}
		_ = report(r, "accounting", err, "on the head: systemctl status mariadb slurmdbd")
		if err == nil {
			r.Stage("accounting")
			return
		}
		c.log.Warn("accounting unavailable", "error", err)
	}
}

// account does so once.
func (c *Configurer) account(ctx context.Context, cfg *wire.NodeConfig) error {
	if err := c.database(); err != nil {
		return err
	}
	seeded := c.seeded(cfg)
	if seeded {
		if err := c.expectController(ctx, cfg.Slurm); err != nil {
			return err
		}
	}
	err := c.systemctl(ctx, "start", databaseUnits()...)
	if err != nil {
		return err
	}
	if seeded {
		err = c.agree(ctx, cfg)
	} else if err = c.await(ctx, ownAddress(cfg), portSlurmdbd); err == nil {
		err = c.operator(ctx, cfg.Slurm.Operator)
	}
	if err != nil || ctx.Err() != nil {
		return err
	}
	return c.markStarted("accounting")
}

// operator gives the cluster's owner the rights of Slurm's administrator: to drain nodes,
// reserve them, and see to everybody's jobs. Slurm wants an account for that; it limits
// nobody.
func (c *Configurer) operator(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	for _, args := range [][]string{
		{"add", "account", "cluster"},
		{"add", "user", name, "account=cluster"},
		{"modify", "user", name, "set", "adminlevel=Administrator"},
	} {
		if err := c.sacctmgr(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// sacctmgr changes what the database has, and tries again for two minutes. What is there already
// is no error.
func (c *Configurer) sacctmgr(ctx context.Context, args ...string) error {
	return c.retry(ctx, func() error {
		limited, cancel := context.WithTimeout(ctx, stuckAfter)
		defer cancel()
		out, err := c.run.Run(limited, "", "sacctmgr", append([]string{"--immediate", "--quiet"}, args...)...)
		switch {
		case err != nil && limited.Err() != nil && ctx.Err() == nil:
			c.unstick(ctx)
		case err != nil && (strings.Contains(out+err.Error(), "already exist") || strings.Contains(out+err.Error(), "Nothing")):
			return nil
		case err != nil:
			// A slurmdbd that ended, as it does where its database is not there, does
			// not come back by itself. Of one that starts nothing is asked.
			_ = c.systemctl(ctx, "start", databaseUnits()...)
		}
		return err
	})
}

// stuckAfter is how long slurmdbd may take to answer the first question. One that is only slow
// and is killed can lose the jobs that it was just told of.
const stuckAfter = 30 * time.Second

// unstick starts slurmdbd again. A slurmctld that registers while the cluster
// is being made known can leave it in a lock that it never gets out of: from
// then on everybody who asks it waits for ever. What it did not take is sent to
// it again.
func (c *Configurer) unstick(ctx context.Context) {
	units := databaseUnits()
	dbd := units[len(units)-1]
	c.log.Warn("restarting unresponsive slurmdbd")
	_ = c.systemctl(ctx, "kill", "--signal=KILL", dbd)
	if err := c.systemctl(ctx, "restart", dbd); err != nil {
		c.log.Warn("slurmdbd restart failed", "error", err)
	}
}

// expectController writes slurmctld's port into the database before slurmdbd runs. slurmdbd
// commits what a slurmctld sends only once it knows that port. One that has never registered,
// as the one that runs by now, would have its jobs confirmed, forget them, and with the end of
// its connection the database would forget them, too.
func (c *Configurer) expectController(ctx context.Context, s *wire.SlurmConfig) error {
	database := databaseUnits()[0]
	if err := c.systemctl(ctx, "start", database); err != nil {
		return err
	}
	return c.retry(ctx, func() error {
		_, err := c.mariadb(ctx, expectationQuery(s))
		if err != nil {
			_ = c.systemctl(ctx, "start", database)
		}
		return err
	})
}

// expectationQuery makes a row that counts as deleted until sacctmgr adds the cluster, which
// leaves the port as it is.
func expectationQuery(s *wire.SlurmConfig) string {
	return fmt.Sprintf("INSERT INTO slurm_acct_db.cluster_table (creation_time, deleted, name, federation, fed_state, last_port)"+
		" VALUES (UNIX_TIMESTAMP(), 1, '%s', '', 0, %s) ON DUPLICATE KEY UPDATE last_port=VALUES(last_port)", s.ClusterName, portSlurmctld)
}

// mariadb has the database answer a query, as its administrator.
func (c *Configurer) mariadb(ctx context.Context, query string) (string, error) {
	return c.run.Run(ctx, query, "mariadb", "--batch", "--skip-column-names")
}

// agree brings slurmctld and its database together. They do it by themselves
// only when slurmctld starts second; here it was first. So the cluster is made
// known to the database, the number that it gets there is written down (a
// slurmctld that finds another one in its state does not start again), and
// slurmctld takes it up without letting go of a job.
func (c *Configurer) agree(ctx context.Context, cfg *wire.NodeConfig) error {
	name := cfg.Slurm.ClusterName
	if err := c.sacctmgr(ctx, "add", "cluster", name); err != nil {
		return err
	}
	id := 0
	if err := c.retry(ctx, func() error {
		text, err := c.mariadb(ctx, numberQuery(cfg.Slurm))
		if err == nil {
			id, err = strconv.Atoi(strings.TrimSpace(text))
		}
		return err
	}); err != nil {
		return fmt.Errorf("ask the database for the cluster's number: %w", err)
	}
	// At once: a slurmctld that ends before this would not start again.
	if _, err := c.files.write(slurmState+"/clustername", clusterNameFile(cfg.Slurm, id), 0o644, "slurm"); err != nil {
		return err
	}
	// Before slurmctld registers: one that does while the database changes can leave slurmdbd
	// in a lock that it never gets out of, and waits for it itself.
	if err := c.operator(ctx, cfg.Slurm.Operator); err != nil {
		return err
	}
	if _, err := c.run.Run(ctx, "", "scontrol", "reconfigure"); err != nil || cfg.Expires.IsZero() {
		return err
	}
	return c.limitPartition(ctx, c.longestJob(cfg)) // it has forgotten that
}

// numberQuery asks for the number that a cluster has in the database.
func numberQuery(s *wire.SlurmConfig) string {
	return fmt.Sprintf("SELECT id FROM slurm_acct_db.cluster_table WHERE deleted=0 AND name='%s'", s.ClusterName)
}

// clusterNameFile is what slurmctld keeps to know its state directory again.
func clusterNameFile(s *wire.SlurmConfig, id int) string {
	return fmt.Sprintf("%s|%d", s.ClusterName, id)
}

// retry tries again for two minutes: a database that starts beside jobs is slow.
func (c *Configurer) retry(ctx context.Context, do func() error) error {
	end := c.clock.Now().Add(2 * time.Minute)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := do()
		if err == nil || c.clock.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.clock.After(wait):
		}
	}
}
