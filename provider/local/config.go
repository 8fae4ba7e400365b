package local

import (
	"context"
	"hash/fnv"
	"log/slog"
	"time"

	"github.com/muster-hpc/muster"
)

// Config is what the provider needs to know.
type Config struct {
	// Dir is the state directory; the provider keeps to Dir/machines.
	Dir string
	// Instance is a short name of the state directory, unique on this host.
	Instance string
	// Slices are the machines to make; see ParseSlices.
	Slices []Slice
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
	// KeepImages is how long an image stays attached after its last machine, so
	// that the next one starts faster. 0: ten minutes; negative: not at all.
	KeepImages time.Duration
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
	if c.KeepImages == 0 {
		c.KeepImages = 10 * time.Minute
	}
	if c.Unit == "" {
		c.Unit = "muster.target"
	}
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
func (c *Config) idBase(index int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.Instance))
	ranges := (lastID - firstID) / idRange
	block := int(h.Sum32()) % (ranges / blockSize)
	return firstID + (block*blockSize+index)%ranges*idRange
}
