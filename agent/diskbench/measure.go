package diskbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/agent/rendezvous"
	"github.com/muster-hpc/muster/agent/tool"
)

// How large the file is: never more than a tenth of what is free, and of the memory
// where it lies in memory; less than the least says nothing.
const (
	mostBytes  = 256 << 20
	leastBytes = 4 << 20
	oneOf      = 10
	wholeBytes = 1 << 20 // a size is a whole number of these
)

// fillWithin is how long writing the file may take: what is there then is measured.
const fillWithin = 10 * time.Second

// Options say what is measured how.
type Options struct {
	Seconds float64 // that each of the figures may take
	Seed    uint64
	Host    string
	Rank    int
	// Dir is where; "" is what Scratch finds.
	Dir string
}

// Measure measures the disk of this node. What could not be measured is an omission;
// an error of the disk itself is a sample that is not OK.
func Measure(ctx context.Context, o Options) ([]rendezvous.Sample, []rendezvous.Omission) {
	omit := func(format string, args ...any) ([]rendezvous.Sample, []rendezvous.Omission) {
		return nil, []rendezvous.Omission{{Host: o.Host, What: "disk", Text: fmt.Sprintf(format, args...)}}
	}
	if !tool.There(Program) {
		return omit("its image has no %s", Program)
	}
	where := Root("").Scratch()
	if o.Dir != "" {
		where = muster.Scratch{Path: o.Dir, Direct: direct(o.Dir)}
	}
	if where.Path == "" {
		return omit("it has no folder for scratch")
	}
	most, err := room(where)
	if err != nil {
		return omit("how much room %s has is not known: %v", where.Path, err)
	}
	if most < leastBytes {
		return omit("%s has too little room: a tenth of it is %d bytes, and %d are the least", where.Path, most, int64(leastBytes))
	}
	samples, err := measure(ctx, o, where, most)
	switch {
	case errors.Is(err, unix.EIO):
		return []rendezvous.Sample{{Metric: "disk.write", Unit: "B/s", Host: o.Host, Rank: o.Rank, Size: blockBytes, Check: err.Error()}}, nil
	case err != nil:
		return omit("%v", err)
	}
	return samples, nil
}

// room is how large the file may be.
func room(where muster.Scratch) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(where.Path, &st); err != nil {
		return 0, err
	}
	free := int64(min(st.Bavail, 1<<50)) * st.Bsize
	if where.Memory {
		if memory := facts.Memory(""); memory > 0 {
			free = min(free, memory)
		}
	}
	return min(mostBytes, free/oneOf) / wholeBytes * wholeBytes, nil
}

func measure(ctx context.Context, o Options, where muster.Scratch, most int64) ([]rendezvous.Sample, error) {
	f, err := nameless(where.Path, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	size, err := fill(ctx, f, most, o.Seed)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be written: %w", err)
	}
	// Twice what it should take, and a little: a disk that hangs is a finding.
	seconds := max(0.1, o.Seconds)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(2*seconds*float64(len(jobs())))*time.Second+20*time.Second)
	defer cancel()
	out, failed := tool.Run(ctx, []*os.File{f}, Program, arguments(size, seconds, where.Direct, o.Seed)...)
	figures, err := readReport(out)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	check := fmt.Sprintf("no error from the kernel; a file of %d MiB in %s, ", size>>20, where.Path)
	if where.Direct {
		check += "past the page cache"
	} else {
		check += "through the page cache: the file system has no direct access"
	}
	var list []rendezvous.Sample
	for _, x := range figures {
		x.Host, x.Rank = o.Host, o.Rank
		if x.Check == "" {
			x.Check = check
		}
		list = append(list, x)
	}
	return list, nil
}

// fill writes the file, for a while at most: what nobody wrote is not read from a
// disk. It returns how large it is.
func fill(ctx context.Context, f *os.File, most int64, seed uint64) (int64, error) {
	end := time.Now().Add(fillWithin)
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	random := rand.NewChaCha8(key)
	block := make([]byte, wholeBytes)
	var size int64
	for size < most && (size < leastBytes || time.Now().Before(end)) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(random, block); err != nil {
			return 0, err
		}
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		size += wholeBytes
	}
	return size, f.Sync()
}
