package configure

import (
	"fmt"

	"github.com/muster-hpc/muster/wire"
)

// machineFile says what programs that measure cannot see: what a node may use of its machine's memory, where its kernel shows
// that of the whole host, and how large the caches of the host are, where a virtual machine shows others. Each line is a name
// and a number.
const machineFile = "/etc/muster/machine"

func (c *Configurer) machine(cfg *wire.NodeConfig) error {
	text := fmt.Sprintf("memory_bytes %d\n", cfg.Memory)
	if cfg.Cache > 0 {
		text += fmt.Sprintf("cache_bytes %d\n", cfg.Cache)
	}
	_, err := c.files.write(machineFile, text, 0o644, "")
	return err
}
