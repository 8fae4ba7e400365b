package save

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/accel"
)

// Host is what of a host a saved state depends on: it is loaded only where all of it is the same.
type Host struct {
	Processor string `json:"processor"`
	Microcode string `json:"microcode,omitempty"`
	Kernel    string `json:"kernel"`
	QEMU      string `json:"qemu"`
	// Machine is the machine's type with its version, and Model that of its processors.
	Machine string `json:"machine"`
	Model   string `json:"model"`
	// Cores and Memory (bytes) are those of the machine. 0: not said.
	Cores  int   `json:"cores,omitempty"`
	Memory int64 `json:"memory_bytes,omitempty"`
}

// ThisHost is what this host is, for a machine of a type whose processors are of a model.
func ThisHost(ctx context.Context, machine, model string) (Host, error) {
	h := Host{Machine: machine, Model: model}
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return h, err
	}
	h.Processor, h.Microcode = parseProcessor(string(b))
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return h, err
	}
	h.Kernel = unix.ByteSliceToString(u.Release[:])
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, accel.Program, "--version").Output()
	h.QEMU, _, _ = strings.Cut(string(out), "\n")
	return h, err
}

// parseProcessor reads model and microcode of the first processor.
func parseProcessor(cpuinfo string) (model, microcode string) {
	for line := range strings.Lines(cpuinfo) {
		k, v, _ := strings.Cut(line, ":")
		switch k, v = strings.TrimSpace(k), strings.TrimSpace(v); {
		case k == "" && model != "":
			return model, microcode
		case k == "model name":
			model = v
		case k == "microcode":
			microcode = v
		}
	}
	return model, microcode
}

// Same refuses a host on which a state does not go on.
func (h Host) Same(here Host) error {
	var problems []muster.Problem
	differ := func(field, was, is string) {
		if was != is {
			problems = append(problems, muster.Problem{Field: field, Reason: muster.ReasonStateOfAnotherHost, Message: fmt.Sprintf("was %q, and is %q here", was, is)})
		}
	}
	differ("processor", h.Processor, here.Processor)
	differ("microcode", h.Microcode, here.Microcode)
	differ("kernel", h.Kernel, here.Kernel)
	differ("qemu", h.QEMU, here.QEMU)
	differ("machine", h.Machine, here.Machine)
	differ("model", h.Model, here.Model)
	differ("cores", strconv.Itoa(h.Cores), strconv.Itoa(here.Cores))
	differ("memory", strconv.FormatInt(h.Memory, 10), strconv.FormatInt(here.Memory, 10))
	if len(problems) == 0 {
		return nil
	}
	return muster.Errorf(muster.EConflict, "the saved state is of another kind of host").Because(muster.ReasonStateOfAnotherHost).
		WithHint("resume it on a host as it was saved on").Listing(problems)
}
