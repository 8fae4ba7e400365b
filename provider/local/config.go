package local

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/seccomp"
	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/muster-hpc/muster/provider/local/network"
)

// Config is what the provider needs to know.
type Config struct {
	// Dir is the state directory; the provider keeps to Dir/machines.
	Dir string
	// Instance is a short name of the state directory, unique on this host.
	Instance string
	// Epoch is that of the records by which machines are started; see daemon.
	Epoch int64
	// Slices are the machines to make; see ParseSlices.
	Slices []Slice
	// Switches are those that machines stand behind, by the Leaf and Chassis of their slices; nil: one for all.
	Switches []network.Switch
	// Oversubscribe allows machines to share cores and memory.
	Oversubscribe bool
	// Reserve is memory left to the host, in bytes. 0: an eighth, 1 GiB at most.
	Reserve int64
	// AgentBinary is put into every machine; "" for none.
	AgentBinary string
	// ImagePath finds the squashfs file (or unpacked directory) of an image.
	ImagePath func(ctx context.Context, id muster.ImageID) (string, error)
	// ImageMasks names units of an image that are of no use in a slice of a
	// host, beside those that never are; nil for none.
	ImageMasks func(id muster.ImageID) []string
	// InitCommand starts a program that calls MachineInit. The default is this
	// program with the argument InitArgument.
	InitCommand []string
	// Kernel finds the kernel of an image and an initramfs with the agent for it, which everybody may
	// read; nil: no virtual machines are started.
	Kernel func(ctx context.Context, id muster.ImageID) (kernel, initramfs string, err error)
	// VMCard has virtual functions for virtual machines; nil: they have none.
	VMCard *VMCard
	// VMDevices are whole devices for virtual machines.
	VMDevices []VMDevice
	// VMCommand starts a program that calls supervisor.Run and jail.Enter; nil: this program.
	VMCommand []string
	// KeepImages is how long an image stays attached after its last machine, so
	// that the next one starts faster. 0: ten minutes; negative: not at all.
	KeepImages time.Duration
	// Open names what of the kernel is open to machines though it is closed unless a
	// site asks for it; see package seccomp.
	Open []string
	// Networks is how many network namespaces users of a machine may make.
	Networks int
	// BootsAtOnce limits how many machines may be booting at once. 0: 64.
	BootsAtOnce int
	// Unit is where machines start; the default is muster.target.
	Unit  string
	Log   *slog.Logger
	Clock muster.Clock
}

func (c *Config) setDefaults() {
	if len(c.InitCommand) == 0 {
		c.InitCommand = []string{"/proc/self/exe", InitArgument}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.BootsAtOnce == 0 {
		c.BootsAtOnce = 64
	}
	if c.KeepImages == 0 {
		c.KeepImages = 10 * time.Minute
	}
	if c.Unit == "" {
		c.Unit = "muster.target"
	}
}

// reserve is what a host with so much memory keeps for itself, in bytes.
func (c *Config) reserve(memory int64) int64 {
	if c.Reserve != 0 {
		return c.Reserve
	}
	return min(memory/8, 1<<30)
}

// checkDoors refuses names of what cannot be opened, all at once.
func checkDoors(open []string) error {
	var wrong []string
	for _, name := range seccomp.Unknown(slices.DeleteFunc(slices.Clone(open), func(n string) bool { return n == uncharged })) {
		w := fmt.Sprintf("%q", name)
		if near := suggest.Of(name, seccomp.Names()); near != "" {
			w += fmt.Sprintf(" (did you mean %s?)", near)
		}
		wrong = append(wrong, w)
	}
	if len(wrong) == 0 {
		return nil
	}
	return muster.Errorf(muster.EInvalid, "local-open: %s cannot be opened to local machines", strings.Join(wrong, ", ")).Because(muster.ReasonBadMachines).
		WithHint("choose from %s", strings.Join(append(seccomp.Names(), uncharged), ", "))
}

// uncharged opens this host to local machines though its kernel charges to nobody what
// it keeps for them.
const uncharged = "nokmem"

// checkKernelMemory refuses such a host unless the site has opened it.
func (c *Config) checkKernelMemory(root string) error {
	check := checkCharged(root)
	if check.OK || check.Warning || len(c.Slices) == 0 || slices.Contains(c.Open, uncharged) {
		return nil
	}
	return muster.Errorf(muster.EConflict, "no local machines on this host: memory that the kernel keeps for them %s", check.Found).Because(muster.ReasonBadMachines).
		WithHint("%s; where all users trust each other, start the server with --local-allow nokmem", check.Fix)
}

// name is what this instance's namespace and control groups are called.
func (c *Config) name() string { return "muster-" + c.Instance }

// IDs for machines are taken from the part of the number space that is set
// aside for containers, in blocks that instances share out by their name.
const (
	firstID   = 0x10000000
	lastID    = 0x6fff0000
	blockSize = 64
)

// idBase is the first user and group ID of the machine with this index.
func (c *Config) idBase(index int) int { return firstID + c.idBlock(index)*idRange }

// owner is the user who owns the namespaces of the machine with this index. Nothing
// runs as that user; the kernel counts by it what it keeps for the machine.
func (c *Config) owner(index int) int { return lastID + c.idBlock(index) }

func (c *Config) idBlock(index int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.Instance))
	ranges := (lastID - firstID) / idRange
	block := int(h.Sum32()) % (ranges / blockSize)
	return (block*blockSize + index) % ranges
}
