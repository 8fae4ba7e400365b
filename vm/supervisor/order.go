package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/muster-hpc/muster/vm/jail"
	"github.com/muster-hpc/muster/vm/qemu"
)

// Argument is the first argument that makes a program call Run.
const Argument = "vm-supervisor"

// orderFD is where a supervisor hears from the server; what its machine is made of comes after it.
const (
	orderFD = 3
	partsFD = 4
)

// Files of a machine in its directory.
const (
	supervisorRecord = "supervisor.json"
	qemuRecord       = "qemu.json"
	controlFile      = "control.sock"
	logFile          = "log"
)

// Log is where the supervisor and the QEMU of the machine in a directory write what they have to say.
func Log(dir string) string { return filepath.Join(dir, logFile) }

// order is what a supervisor is told. It holds a token.
type order struct {
	Dir     string            `json:"dir"`
	Machine qemu.Machine      `json:"machine"`
	ID      int               `json:"id"`
	Files   map[string]string `json:"files"`
	Parts   int               `json:"parts"` // descriptors
	Locked  int64             `json:"locked_bytes,omitempty"`
	Devices []jail.Device     `json:"devices,omitempty"`
	Task    json.RawMessage   `json:"task,omitempty"`
}

// started is what it answers.
type started struct {
	QEMU  int    `json:"qemu,omitempty"`
	Error string `json:"error,omitempty"`
}

// maxLine bounds what either side reads.
const maxLine = 4 << 20

// readLine reads one line and nothing after it.
func readLine(in io.Reader, most int) ([]byte, error) {
	var line []byte
	for one := make([]byte, 1); ; {
		n, err := in.Read(one)
		if n == 1 && one[0] == '\n' {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
		if line = append(line, one[:n]...); len(line) > most {
			return nil, errors.New("the line is too long")
		}
	}
}

func writeLine(out io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = out.Write(append(b, '\n'))
	return err
}

// lay numbers the descriptors of a machine as its QEMU has them.
func lay(m *qemu.Machine) (parts int) {
	m.Monitor, m.Console, m.Channel = jail.FirstFD, jail.FirstFD+1, jail.FirstFD+2
	next := jail.FirstFD + 3
	for i := range m.Disks {
		m.Disks[i].FD = next
		next++
	}
	for i := range m.NICs {
		m.NICs[i].FD = next
		next += m.NICs[i].FDs()
	}
	return next - jail.FirstFD - 3
}

// places are where a machine finds its kernel and initramfs.
const (
	kernelPlace    = "/boot/kernel"
	initramfsPlace = "/boot/initramfs"
)

// taken are the descriptors that a supervisor was started with.
func (o *order) taken() ([]*os.File, error) {
	if o.Parts < 0 || o.Parts > 64 || lay(&o.Machine) != o.Parts {
		return nil, fmt.Errorf("%d descriptors are not those of the machine", o.Parts)
	}
	var files []*os.File
	for i := range o.Parts {
		files = append(files, os.NewFile(uintptr(partsFD+i), "part"))
	}
	return files, nil
}
