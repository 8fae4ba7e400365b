package configure

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/crc32"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Where Slurm keeps things.
const (
	mungeKey   = "/etc/munge/munge.key"
	slurmState = "/var/lib/slurm/slurmctld"
	// slurmSeed is made with the image: what slurmctld learns from its
	// database when it first meets it. With it, slurmctld starts before the
	// database is up, and the database comes when nobody waits for it.
	slurmSeed = "/usr/share/muster/slurm"
)

// seedFiles are those without which slurmctld waits for its database.
func seedFiles() []string { return []string{"assoc_mgr_state", "last_tres"} }

// munge writes the cluster's key. The first time its service is started at once: it needs
// nothing else, listens to nobody outside, and Slurm waits for it.
func (c *Configurer) munge(ctx context.Context, cfg *wire.NodeConfig, had memory) error {
	s := cfg.Slurm
	if s == nil {
		return nil
	}
	key, err := base64.StdEncoding.DecodeString(s.MungeKey)
	if err != nil || len(key) < 32 {
		return muster.Errorf(muster.EInternal, "the munge key of the configuration is not one")
	}
	err = c.writeFor(munged, wire.File{Path: mungeKey, Content: string(key), Mode: 0o400, Owner: "munge"})
	if err != nil || had.Generation != 0 {
		return err
	}
	return c.systemctl(ctx, "start", mungeUnit)
}

// slurm writes what Slurm needs on this node.
func (c *Configurer) slurm(cfg *wire.NodeConfig, ch *changed) error {
	s := cfg.Slurm
	if s == nil {
		return nil
	}
	var err error
	if s.NodeConf != "" {
		options := fmt.Sprintf("SLURMD_OPTIONS=-Z -N %s --conf-server %s:6817 --conf \"%s\"\n", cfg.Node, s.Server, s.NodeConf)
		if _, err := c.files.write("/etc/default/slurmd", options, 0o644, ""); err != nil {
			return err
		}
		if err := c.files.mkdir("/var/spool/slurmd", 0o755, ""); err != nil {
			return err
		}
		if err := c.plainFiles(none, s.Scripts); err != nil {
			return err
		}
	}
	// Login nodes, too, have the files: they run no slurmd that would keep
	// what the head says.
	if !cfg.Head {
		return c.plainFiles(none, s.Files)
	}
	if !c.started("slurmctld") {
		if ch.scripts, err = c.recoverJobs(); err != nil {
			return err
		}
	}
	if err := c.plainFiles(slurmctld, c.withFirstJob(s.Files)); err != nil {
		return err
	}
	ch.fresh = !c.files.exists(slurmState + "/clustername")
	if err := c.files.mkdir(slurmState, 0o700, "slurm"); err != nil {
		return err
	}
	return c.seedState(cfg)
}

// seedState gives a new slurmctld what lets it start without its database.
// State that is there already is never touched.
func (c *Configurer) seedState(cfg *wire.NodeConfig) error {
	if c.files.exists(slurmState+"/clustername") || !c.seeded(cfg) {
		return nil
	}
	for _, name := range seedFiles() {
		text, err := c.files.read(slurmSeed + "/" + name)
		if err != nil {
			return err
		}
		if _, err := c.files.write(slurmState+"/"+name, text, 0o600, "slurm"); err != nil {
			return err
		}
	}
	_, err := c.files.write(slurmState+"/clustername", clusterNameFile(cfg.Slurm, slurmID(cfg)), 0o644, "slurm")
	return err
}

// seeded reports whether slurmctld starts before its database. Releases before
// 23.11 find together with a database that comes later only by a restart, so
// there the database goes first.
func (c *Configurer) seeded(cfg *wire.NodeConfig) bool {
	if !cfg.Slurm.Accounting {
		return false
	}
	if release(cfg.Slurm) < 2311 {
		return false
	}
	for _, name := range seedFiles() {
		if !c.files.exists(slurmSeed + "/" + name) {
			return false
		}
	}
	return true
}

// release is the version of Slurm as year and month; 0 when it cannot be read.
func release(s *wire.SlurmConfig) int {
	var year, month int
	if _, err := fmt.Sscanf(s.Version, "%d.%d", &year, &month); err != nil {
		return 0
	}
	return year*100 + month
}

// slurmID is a number for the time until the database has chosen one.
func slurmID(cfg *wire.NodeConfig) int {
	return int(crc32.ChecksumIEEE([]byte(cfg.Cluster))%4000) + 1
}

// sshUnit is what the image calls its SSH server.
func (c *Configurer) sshUnit() string {
	for _, dir := range []string{"/usr/lib/systemd/system/", "/lib/systemd/system/", "/etc/systemd/system/"} {
		if c.files.exists(dir + "ssh.service") {
			return "ssh.service"
		}
	}
	return "sshd.service"
}
