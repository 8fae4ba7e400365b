package powertest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/executable"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/drivers"
)

// simulator starts OpenIPMI's controller, which somebody else wrote. Its
// machine is two files.
func simulator(t *testing.T) (port int, dir string) {
	t.Helper()
	path := tool(t, "ipmi_sim")
	dir = t.TempDir()
	port = freePort(t)
	files := map[string]string{
		"lan.conf": fmt.Sprintf(`name "sim"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 %d
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "%s/chassis"
  user 1 true "" "test" user 10 none md2 md5 straight
  user 2 true "%s" "%s" admin 10 none md2 md5 straight
`, port, dir, user, password),
		"emu.cmd": "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n",
		"chassis": `#!/bin/sh
D=` + dir + `
op=$1; shift
case $op in
get) for p in "$@"; do printf '%s:' "$p"; cat "$D/$p" 2>/dev/null || echo 0; done ;;
set) while [ $# -gt 1 ]; do echo "$2" >"$D/$1"; echo "$1 $2" >>"$D/log"; shift 2; done ;;
*) exit 1 ;;
esac
`,
		"power": "0\n", "boot": "none\n", "log": "",
	}
	for name, text := range files {
		if err := executable.Write(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-c", filepath.Join(dir, "lan.conf"), "-f", filepath.Join(dir, "emu.cmd"), "-s", state, "-n")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return port, dir
}

func freePort(t *testing.T) int {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	return pc.LocalAddr().(*net.UDPAddr).Port
}

// TestSimulator: our driver and a controller of somebody else's, by a session
// of our own (it speaks cipher suite 3 only) and through ipmitool.
func TestSimulator(t *testing.T) {
	t.Parallel()
	for _, quirk := range []string{"no-valid-bit", "ipmi15"} {
		t.Run(quirk, func(t *testing.T) {
			t.Parallel()
			if quirk == "ipmi15" {
				tool(t, "ipmitool")
			}
			Manners(t, func(t *testing.T) Subject {
				port, dir := simulator(t)
				read := func(name string) string {
					b, _ := os.ReadFile(filepath.Join(dir, name))
					return strings.TrimSpace(string(b))
				}
				s := Subject{
					Drivers: drivers.All(), Password: password,
					Target: power.Target{Machine: "m1", Rack: "r1", Secret: secret, Address: muster.PowerAddress{
						Kind: muster.PowerIPMI, Address: local(port), User: user, Quirk: quirk}},
					Powered: func() bool { return read("power") == "1" },
					Starts: func() (network []bool) {
						boot := "none"
						on := false
						for line := range strings.SplitSeq(read("log"), "\n") {
							what, value, _ := strings.Cut(line, " ")
							switch {
							case what == "boot":
								boot = value
							case what == "power" && value == "1" && !on:
								on, network = true, append(network, boot == "pxe")
							case what == "power":
								on = value == "1"
							}
						}
						return network
					},
				}
				awaitSimulator(t, s)
				return s
			})
		})
	}
}

func awaitSimulator(t *testing.T, s Subject) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		d, err := s.Drivers.Open(s.Target, power.Deps{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.State(within(t, 5*time.Second))
		_ = d.Close(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("ipmi_sim does not answer: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
