package machine

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
)

// Config is what a machine is, which does not change while its lab is up.
type Config struct {
	Name     string     `json:"name"`
	Class    string     `json:"class"`
	Rack     string     `json:"rack"`
	Position int        `json:"position"`
	Serial   string     `json:"serial"`
	UUID     string     `json:"uuid"`
	Cores    int        `json:"cores"`
	Sockets  int        `json:"sockets,omitempty"`    // 0 and 1: one
	Memory   int64      `json:"memory_bytes"`         // bytes
	Disk     int64      `json:"disk_bytes"`           // bytes
	NVMe     int64      `json:"nvme_bytes,omitempty"` // bytes; 0: it has none
	UEFI     bool       `json:"uefi"`
	TPM      bool       `json:"tpm"`
	KVM      bool       `json:"kvm"`
	NICs     []NIC      `json:"nics"`         // the first is the management one
	BMC      netip.Addr `json:"bmc,omitzero"` // none: only the magic packet wakes it
	// House is the network namespace that the controller's address is in, Account its
	// account, whose password is in a file.
	House        string `json:"house,omitempty"`
	Account      string `json:"account,omitempty"`
	PasswordFile string `json:"password_file,omitempty"`
}

const configDoc document.Kind[Config] = "lab-machine/1"

// NIC is a card and the port that it is plugged into.
type NIC struct {
	Use  string `json:"use"` // management, message
	MAC  string `json:"mac"`
	Port string `json:"port"`
}

// Uses of cards.
const (
	Management = muster.UseManagement
	Message    = muster.UseMessage
)

// Files of a machine in its directory.
const (
	configFile   = "machine.json"
	stateFile    = "state.json"
	lockFile     = "lock"
	recordFile   = "process.json"
	logFile      = "machine.log"
	diskFile     = "disk.raw"
	nvmeFile     = "nvme.raw"
	varsFile     = "uefi-vars.fd"
	tpmDirectory = "tpm"
	tpmSocket    = "tpm.sock"
	controlFile  = "control.sock"
	consoleFile  = "console.sock"
	consoleLog   = "console.log"
)

// Record is where the process of the machine in dir is written down.
func Record(dir string) string { return filepath.Join(dir, recordFile) }

// Log is where that process and QEMU write what they have to say.
func Log(dir string) string { return filepath.Join(dir, logFile) }

// ConsoleLog holds what the machine printed.
func ConsoleLog(dir string) string { return filepath.Join(dir, consoleLog) }

// ConsoleSocket is where to type.
func ConsoleSocket(dir string) string { return filepath.Join(dir, consoleFile) }

// LongestFile is how much longer than a machine's directory the paths of its
// sockets are.
func LongestFile() int { return len(controlFile) + 1 }

// Write puts a machine into its directory.
func (c Config) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	b, err := configDoc.Encode(&c)
	if err != nil {
		return err
	}
	return replace(filepath.Join(dir, configFile), b)
}

// Load reads the machine in a directory.
func Load(dir string) (Config, error) {
	b, err := os.ReadFile(filepath.Join(dir, configFile))
	if err != nil {
		return Config{}, err
	}
	return parseConfig(b)
}

func parseConfig(b []byte) (Config, error) {
	c, err := configDoc.Decode("the "+configFile+" of a lab's machine", b)
	var e *muster.Error
	if errors.As(err, &e) && e.Code == muster.EConflict {
		return Config{}, e.WithHint("run 'muster lab down', then 'muster lab up'")
	}
	if err != nil {
		return Config{}, muster.Errorf(muster.ECorrupt, "a lab's machine cannot be read: %v", err).WithHint("run 'muster lab down', then 'muster lab up'")
	}
	bad := c.Name == "" || c.Cores < 1 || c.Memory < 1<<20 || len(c.NICs) == 0
	for _, n := range c.NICs {
		if mac, err := net.ParseMAC(n.MAC); err != nil || len(mac) != 6 || n.Port == "" {
			bad = true
		}
	}
	if bad {
		return Config{}, muster.Errorf(muster.ECorrupt, "the lab's machine %q lacks what a machine needs", c.Name).WithHint("run 'muster lab down', then 'muster lab up'")
	}
	return c, nil
}

// replace replaces a file as a whole.
func replace(path string, b []byte) error {
	return atomicfile.Replace(path, append(b, '\n'), 0o600)
}
