package configure

import (
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// names sets the host name and the table of all nodes. The full name stands
// first: it is what `hostname -f` and a lookup by address give.
func (c *Configurer) names(cfg *wire.NodeConfig) error {
	if err := c.o.Hostname(cfg.Node); err != nil {
		return err
	}
	if _, err := c.files.write("/etc/hostname", cfg.Node+"\n", 0o644, ""); err != nil {
		return err
	}
	_, err := c.files.write("/etc/hosts", hostsFile(cfg), 0o644, "")
	return err
}

func hostsFile(cfg *wire.NodeConfig) string {
	var b strings.Builder
	b.WriteString("# All nodes of this cluster, written by Muster. Changes here do not last.\n")
	b.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	for _, h := range cfg.Hosts {
		b.WriteString(h.Address + "\t")
		if cfg.Domain != "" {
			b.WriteString(h.Name + "." + cfg.Domain + " ")
		}
		b.WriteString(h.Name + "\n")
	}
	for _, h := range cfg.Outside {
		b.WriteString(h.Address + "\t" + h.Name + "\n")
	}
	return b.String()
}
