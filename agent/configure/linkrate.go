package configure

import (
	"context"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// holdLinks holds what each message interface sends to a rate, and reads it back. All nodes of
// a cluster do so: what one receives from another is held where it is sent. Root of the node
// can undo it: it makes figures comparable, and keeps nobody out.
func (c *Configurer) holdLinks(ctx context.Context, cfg *wire.NodeConfig) error {
	rate := cfg.Shape.LinkRate
	if rate == 0 {
		return nil
	}
	paths, err := filepath.Glob(filepath.Join("/", c.o.Root, "sys/class/net/msg[0-9]*"))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return shapeFault("its links are to be held to %d b/s, and it has none for messages", rate)
	}
	burst := max(rate/8/500, 128<<10) // bytes: a large segment, and 2 ms of traffic
	for _, p := range paths {
		dev := filepath.Base(p)
		if _, err := c.run.Run(ctx, "", "tc", "qdisc", "replace", "dev", dev, "root", "handle", "1:", "tbf",
			"rate", strconv.FormatInt(rate, 10)+"bit", "burst", strconv.FormatInt(burst, 10), "limit", strconv.FormatInt(4*burst, 10)); err != nil {
			return shapeFault("link %s cannot be held to a rate: %v", dev, err)
		}
		text, err := c.run.Run(ctx, "", "tc", "qdisc", "show", "dev", dev, "root")
		if err != nil {
			return shapeFault("what link %s is held to cannot be read: %v", dev, err)
		}
		if is := tbfRate(text); is != rate {
			return shapeFault("link %s: %d b/s asked for, %d b/s set", dev, rate, is)
		}
	}
	return nil
}

// tbfRate reads a rate in bits/s as tc prints it: "qdisc tbf 1: root refcnt 2 rate 1Gbit burst
// 250Kb lat 8ms". 0: there is none.
func tbfRate(text string) int64 {
	m := regexp.MustCompile(`qdisc tbf .* rate ([0-9]+)([KMGT]?)bit `).FindStringSubmatch(strings.TrimSpace(text) + " ")
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	factor := map[string]int64{"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[m[2]]
	if err != nil || n > 1e13/factor {
		return 0
	}
	return n * factor
}
