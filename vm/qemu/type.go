package qemu

import (
	"bufio"
	"bytes"
	"context"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/accel"
)

// Type is the newest q35 that this host's QEMU has, with its version. A machine keeps the type that it
// was made with: the name without a version means another one after an upgrade.
func Type(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, accel.Program, "-machine", "help").Output()
	if err != nil {
		return "", muster.Errorf(muster.EUnavailable, "%s does not run on this host", accel.Program).Because(muster.ReasonProgramMissing).
			WithHint("install QEMU (apt-get install qemu-system-x86)").Wrap(err)
	}
	name := parseType(out)
	if name == "" {
		return "", muster.Errorf(muster.EUnavailable, "this host's %s has no q35 machine", accel.Program).Because(muster.ReasonProgramMissing).
			WithHint("install QEMU 7.2 or later (apt-get install qemu-system-x86)")
	}
	return name, nil
}

// parseType finds what q35 is short for in the list of machines; "" for nothing.
func parseType(list []byte) string {
	for in := bufio.NewScanner(bytes.NewReader(list)); in.Scan(); {
		name, text, _ := strings.Cut(in.Text(), " ")
		if name != "q35" {
			continue
		}
		_, alias, _ := strings.Cut(text, "(alias of ")
		alias, _, closed := strings.Cut(alias, ")")
		if closed && versioned(alias) {
			return alias
		}
	}
	return ""
}

// versioned reports whether a machine type names its version.
func versioned(name string) bool {
	return regexp.MustCompile(`^pc-q35-[a-z0-9.]*[0-9]$`).MatchString(name)
}
