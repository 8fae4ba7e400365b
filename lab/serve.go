package lab

import (
	"strconv"

	"github.com/muster-hpc/muster/lab/sleep"
)

// translatedArgs are arguments of Linux for machines whose processor is translated: it has
// none of the flaws that mitigations work around, and each of these costs a boot there.
//
//   - mitigations: detours at every system call and indirect jump;
//   - init_on_alloc: every page is zeroed before it is overwritten;
//   - cryptomgr.notests: ciphers that are tried at each start;
//   - audit, lsm: hooks at every access to a file, and programs of systemd for them.
const translatedArgs = "mitigations=off,init_on_alloc=0,cryptomgr.notests,audit=0,lsm=yama"

// Serving are the flags of a server for the lab's machines.
func (l *Lab) Serving() ([]string, error) {
	c, err := l.Config()
	if err != nil {
		return nil, err
	}
	nic := Inside
	if c.Uplink != "" {
		nic = c.Uplink
	}
	flags := []string{"--metal-interface", nic, "--metal-mtu", strconv.Itoa(sleep.MTU), "--metal-console", "ttyS0,115200n8"}
	if !c.KVM {
		flags = append(flags, "--metal-kernel-args", translatedArgs, "--validate", "off", "--idle-benchmark-interval", "0")
	}
	return flags, nil
}
