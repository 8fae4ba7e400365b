package hibernate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// Kernel is the running kernel's way to hibernate, below a root ("" in life).
type Kernel struct{ Root string }

func (k Kernel) path(name string) string { return filepath.Join("/", k.Root, name) }

func (k Kernel) read(name string) string {
	b, _ := os.ReadFile(k.path(name))
	return strings.TrimSpace(string(b))
}

// Why says why this machine cannot hibernate as it is; nil: it can. What each line says is for people.
func (k Kernel) Why() (list []string) {
	if !slices.Contains(strings.Fields(k.read("sys/power/state")), "disk") {
		if mode := k.Lockdown(); mode != "" {
			list = append(list, "its kernel is locked down ("+mode+"), which forbids it: switch Secure Boot off")
		} else {
			list = append(list, "its kernel cannot hibernate: it needs CONFIG_HIBERNATION, and no argument nohibernate")
		}
	}
	if found, _ := filepath.Glob(k.path("sys/class/infiniband/*")); len(found) > 0 {
		list = append(list, "it has RDMA devices ("+names(found)+"), whose state does not survive")
	}
	if found := k.accelerators(); len(found) > 0 {
		list = append(list, "it has accelerators ("+names(found)+"), whose memory does not survive")
	}
	if lines := strings.Split(k.read("proc/swaps"), "\n"); len(lines) > 1 {
		list = append(list, "it has swap space of its own ("+strings.Fields(lines[1])[0]+")")
	}
	return list
}

// Lockdown is the mode of the kernel's lockdown, "" for none.
func (k Kernel) Lockdown() string {
	_, rest, ok := strings.Cut(k.read("sys/kernel/security/lockdown"), "[")
	mode, _, closed := strings.Cut(rest, "]")
	if !ok || !closed || mode == "none" {
		return ""
	}
	return mode
}

// accelerators are devices of GPUs' drivers that compute.
func (k Kernel) accelerators() (list []string) {
	for _, pattern := range []string{"dev/nvidia[0-9]*", "sys/class/kfd/kfd/topology/nodes/*/gpu_id", "sys/class/accel/*"} {
		found, _ := filepath.Glob(k.path(pattern))
		for _, f := range found {
			if b, err := os.ReadFile(f); filepath.Base(f) == "gpu_id" && (err != nil || strings.TrimSpace(string(b)) == "0") {
				continue // a processor
			}
			list = append(list, f)
		}
	}
	return list
}

func names(paths []string) string {
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		if base := filepath.Base(p); base != "gpu_id" {
			out = append(out, base)
		} else {
			out = append(out, "kfd")
		}
	}
	return strings.Join(out, ", ")
}

// Suspend writes the memory to the swap area, and switches the machine off. It returns when the
// machine goes on, or with an error when it could not be written.
func (k Kernel) Suspend() error {
	if err := k.write("sys/power/disk", "shutdown"); err != nil {
		return muster.Errorf(muster.EUnavailable, "the kernel does not switch the machine off when its memory is written").Wrap(err)
	}
	if err := k.write("sys/power/state", "disk"); err != nil {
		return muster.Errorf(muster.EUnavailable, "the memory could not be written").
			WithHint("the kernel's log on the machine's console says why").Wrap(err)
	}
	return nil
}

// GoOn has the kernel go on from the memory that a device holds. It returns only when it does not.
func (k Kernel) GoOn(number string) error {
	if err := k.write("sys/power/resume", number); err != nil {
		return fmt.Errorf("the kernel does not go on from memory: %w", err)
	}
	return errors.New("the kernel did not go on from memory: another kernel wrote it, or it cannot be read; its log on the console says which")
}

func (k Kernel) write(name, text string) error {
	f, err := os.OpenFile(k.path(name), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", errors.ErrUnsupported, name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.TrimSpace([]byte(text)))
	return errors.Join(err, f.Close())
}
