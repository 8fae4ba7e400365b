package qemu

import (
	"fmt"
	"strconv"
)

// processors is how many there are, in how many sockets.
func processors(c Config) string {
	if c.Sockets < 2 {
		return strconv.Itoa(c.Cores)
	}
	return fmt.Sprintf("%d,sockets=%d,cores=%d,threads=1", c.Cores, c.Sockets, c.Cores/c.Sockets)
}

// cells give each socket a memory node of its own. Reaching into another one costs nothing
// more: QEMU shows how memory is divided, and has one memory.
func cells(c Config) []string {
	if c.Sockets < 2 {
		return nil
	}
	var args []string
	each, memory := c.Cores/c.Sockets, c.Memory/int64(c.Sockets)>>20
	for i := range c.Sockets {
		args = append(args,
			"-object", fmt.Sprintf("memory-backend-ram,id=cell%d,size=%dM", i, memory),
			"-numa", fmt.Sprintf("node,nodeid=%d,cpus=%d-%d,memdev=cell%d", i, i*each, (i+1)*each-1, i))
	}
	return args
}
