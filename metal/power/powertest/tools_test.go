package powertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/metal/power/bmc"
)

// tool finds a program, or skips with the reason.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(name + " is not installed: an independent opinion is missing")
	}
	return path
}

// TestIpmitool drives our controller with the program that everybody uses.
func TestIpmitool(t *testing.T) {
	t.Parallel()
	path := tool(t, "ipmitool")
	for _, suite := range []string{"", "3", "17"} {
		t.Run("suite="+suite, func(t *testing.T) {
			t.Parallel()
			b, chassis := controller(t, listensIPMI)
			run := func(password string, args ...string) (string, error) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				all := []string{"-I", "lanplus", "-H", "127.0.0.1", "-p", strconv.Itoa(b.IPMI()), "-U", user, "-E", "-R", "1"}
				if suite != "" {
					all = append(all, "-C", suite)
				}
				cmd := exec.CommandContext(ctx, path, append(all, args...)...)
				cmd.Env = append(os.Environ(), "IPMI_PASSWORD="+password)
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			expect := func(want string, args ...string) {
				t.Helper()
				out, err := run(password, args...)
				if err != nil || !strings.Contains(out, want) {
					t.Errorf("ipmitool %v: %v, %q, want %q", args, err, out, want)
				}
			}
			expect("Chassis Power is off", "chassis", "power", "status")
			expect("Set Boot Device to pxe", "chassis", "bootdev", "pxe")
			expect("Force PXE", "chassis", "bootparam", "get", "5")
			expect("Chassis Power Control: Up/On", "chassis", "power", "on")
			expect("Chassis Power is on", "chassis", "power", "status")
			expect("IPMI Version              : 2.0", "mc", "info")
			expect("Chassis Power Control: Cycle", "chassis", "power", "cycle")
			expect("Chassis Power Control: Down/Off", "chassis", "power", "off")
			expect("Chassis Power is off", "chassis", "power", "status")
			if out, err := run("wrong", "chassis", "power", "on"); err == nil {
				t.Errorf("a wrong password switched it on: %s", out)
			}
			if on, _ := chassis.Power(t.Context()); on {
				t.Error("it is on")
			}
			starts := chassis.Starts()
			if len(starts) != 2 || starts[0].Device != bmc.DeviceNetwork || starts[1].Device != bmc.DeviceDefault {
				t.Errorf("its starts: %v", starts)
			}
			if n := b.Sessions(); n != 0 {
				t.Errorf("%d sessions are left", n)
			}
		})
	}
}

// TestCurl walks through our controller's Redfish as a person would.
func TestCurl(t *testing.T) {
	t.Parallel()
	path := tool(t, "curl")
	b, chassis := controller(t, listensRedfish)
	conf := filepath.Join(t.TempDir(), "curlrc")
	if err := os.WriteFile(conf, []byte("user = \""+user+":"+password+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	curl := func(status int, address string, args ...string) map[string]any {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		all := append([]string{"-sS", "-k", "-K", conf, "-w", "\n%{http_code}", "-H", "Content-Type: application/json"}, args...)
		out, err := exec.CommandContext(ctx, path, append(all, fmt.Sprintf("https://127.0.0.1:%d%s", b.Redfish(), address))...).Output()
		if err != nil {
			t.Fatalf("curl %s: %v", address, err)
		}
		at := strings.LastIndex(string(out), "\n")
		if got := string(out[at+1:]); got != strconv.Itoa(status) {
			t.Errorf("%v %s: %s, want %d: %s", args, address, got, status, out[:at])
		}
		var o map[string]any
		_ = json.Unmarshal(out[:at], &o)
		return o
	}
	// Every link of the tree leads to something that names itself so.
	seen := map[string]bool{}
	var walk func(string)
	walk = func(p string) {
		if seen[p] {
			return
		}
		seen[p] = true
		o := curl(200, p)
		if o["@odata.id"] != p {
			t.Errorf("%s calls itself %v", p, o["@odata.id"])
		}
		var links func(any)
		links = func(v any) {
			switch v := v.(type) {
			case map[string]any:
				if id, ok := v["@odata.id"].(string); ok {
					walk(id)
				}
				for _, x := range v {
					links(x)
				}
			case []any:
				for _, x := range v {
					links(x)
				}
			}
		}
		links(o)
	}
	walk("/redfish/v1/")
	if len(seen) < 9 {
		t.Errorf("the tree has only %d resources", len(seen))
	}
	const system = "/redfish/v1/Systems/1"
	curl(204, system, "-X", "PATCH", "-d", `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}`)
	curl(412, system, "-X", "PATCH", "-H", `If-Match: "0-false"`, "-d", `{"Boot":{"BootSourceOverrideTarget":"Hdd"}}`)
	curl(400, system+"/Actions/ComputerSystem.Reset", "-X", "POST", "-d", `{"ResetType":"Explode"}`)
	curl(204, system+"/Actions/ComputerSystem.Reset", "-X", "POST", "-d", `{"ResetType":"On"}`)
	if o := curl(200, system); o["PowerState"] != "On" {
		t.Errorf("PowerState is %v", o["PowerState"])
	}
	if starts := chassis.Starts(); len(starts) != 1 || starts[0].Device != bmc.DeviceNetwork {
		t.Errorf("its starts: %v", starts)
	}
	conf = "/dev/null" // nobody
	curl(401, system)
	curl(401, system+"/Actions/ComputerSystem.Reset", "-X", "POST", "-d", `{"ResetType":"ForceOff"}`)
	if on, _ := chassis.Power(t.Context()); !on {
		t.Error("nobody switched it off")
	}
}
