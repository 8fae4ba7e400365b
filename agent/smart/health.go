package smart

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-hpc/muster/agent/facts"
)

// Health is what a disk says of itself. That of a disk without SMART is empty.
type Health struct {
	// Told: the disk has a verdict on itself.
	Told bool
	// Failing is why it says that it fails, in words; "": it does not.
	Failing string
	// Wear is how much of its life is used, for people; "": it does not say.
	Wear string
	// Errors are its own counters. Most have counted since the disk was made.
	Errors []facts.Errors
}

// answer is how long one command may take. It is generous: what the kernel does with a
// disk that is late (it resets it) is worse than to wait.
const answer = 20 * time.Second

// ErrSilent means that a disk did not answer in the time of a command. One that refuses a
// question has answered.
var ErrSilent = errors.New("it does not answer")

// errRefused: the disk, or what is before it, does not know the question.
var errRefused = errors.New("refused")

// Read asks the disk with this name in /sys/block. A disk that cannot be asked has an
// empty Health and is no error; ErrSilent is the only one. It may take as long as the
// kernel needs to give up on a broken disk, or for ever: who waits, waits for so long
// and no longer.
func Read(name string) (Health, error) {
	var h Health
	var err error
	path := "/dev/" + strings.ReplaceAll(name, "!", "/")
	switch {
	case strings.HasPrefix(name, "nvme"):
		h, err = readNVMe(name, path)
	case strings.HasPrefix(name, "sd") && !usb(name):
		h, err = readSCSI(name, path)
	}
	if errors.Is(err, ErrSilent) {
		return Health{}, ErrSilent
	}
	if err != nil {
		return Health{}, nil //nolint:nilerr // what cannot be asked has no health to tell
	}
	return h, nil
}

// usb reports whether a disk is behind USB: some of what translates there stops to
// answer when it is asked what it does not know.
func usb(name string) bool {
	at, err := filepath.EvalSymlinks(filepath.Join("/sys/block", name))
	return err == nil && strings.Contains(at, "/usb")
}

// number reads an unsigned number of any length, lowest byte first. More than fits is
// the most that does.
func number(b []byte) uint64 {
	var n uint64
	for i, x := range b {
		if i < 8 {
			n |= uint64(x) << (8 * i)
		} else if x != 0 {
			return 1<<64 - 1
		}
	}
	return n
}
