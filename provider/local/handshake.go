package local

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// initConfig is what the server tells the first process of a machine. The
// file descriptors of the layers of the root file system travel beside it, from
// the top down.
type initConfig struct {
	Hostname  string     `json:"hostname"`
	Layers    int        `json:"layers"`
	Shares    []string   `json:"shares,omitempty"` // where shares go, as they stand in the antechamber
	Seeded    []bool     `json:"seeded,omitempty"` // which of them begin with what the image has there
	RootSize  int64      `json:"root_size_bytes"`  // bytes that may be written to the root
	ShmSize   int64      `json:"shm_size_bytes"`   // bytes of /dev/shm
	Inodes    int64      `json:"inodes"`           // files on each of its own file systems
	Bootstrap []byte     `json:"seed"`             // /run/muster/seed.json
	CPUInfo   []byte     `json:"cpuinfo"`          // what /proc/cpuinfo shows, empty: the host's
	Online    string     `json:"online"`           // what .../cpu/online shows, empty: the host's
	V1        []string   `json:"v1,omitempty"`
	Masks     []string   `json:"masks,omitempty"` // units of this image
	Open      []string   `json:"open,omitempty"`  // doors of the kernel that the site has opened
	Links     []initLink `json:"links"`
	Argv      []string   `json:"argv"`
	Env       []string   `json:"env"`
	// Trial makes the process test the machine instead of becoming an init.
	Trial *trial `json:"trial,omitempty"`
}

// initLink is a network device that is already in the machine's namespace.
type initLink struct {
	Name    string       `json:"name"`
	Address netip.Prefix `json:"address"`
	Gateway netip.Addr   `json:"gateway,omitzero"` // reached on this link directly
	Default bool         `json:"default,omitempty"`
	// Detour is a network of which neighbours on this link have addresses on other links: what is
	// sent from one of them to another goes by this one, but for what goes to DetourNot.
	Detour    netip.Prefix `json:"detour,omitzero"`
	DetourNot netip.Addr   `json:"detour_not,omitzero"`
	MTU       int          `json:"mtu,omitempty"`
}

// initReport is what the first process answers. An end of file after a report
// without error means that the image's own init runs.
type initReport struct {
	Step  string `json:"step"`
	Error string `json:"error,omitempty"`
}

// maxMessage bounds what either side accepts.
const maxMessage = 8 << 20

// sendInit sends the configuration and its descriptors.
func sendInit(sock *os.File, cfg *initConfig, fds []int) error {
	body, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	return send(sock, body, fds)
}

// sendBounds sends the bounds to the process in the outer namespace.
func sendBounds(sock *os.File, b *bounds) error {
	body, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return send(sock, body, nil)
}

// send sends a message and its length before it, with descriptors.
func send(sock *os.File, body []byte, fds []int) error {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	if err := unix.Sendmsg(int(sock.Fd()), head, rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("hand over to the machine: %w", err)
	}
	if _, err := sock.Write(body); err != nil {
		return fmt.Errorf("hand over to the machine: %w", err)
	}
	return nil
}

// receiveBody receives a message without descriptors.
func receiveBody(sock *os.File) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(sock, head); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxMessage {
		return nil, errors.New("message too long")
	}
	body := make([]byte, size)
	_, err := io.ReadFull(sock, body)
	return body, err
}

// receiveBorn reads the one line that the outer process says, and nothing after it:
// the machine's first process speaks over the same connection.
func receiveBorn(sock *os.File) (born, error) {
	var line []byte
	var b born
	for one := make([]byte, 1); len(line) < 1<<16; {
		if _, err := io.ReadFull(sock, one); err != nil {
			return b, fmt.Errorf("the process that makes its namespaces ended: %w", err)
		}
		if one[0] == '\n' {
			return b, json.Unmarshal(line, &b)
		}
		line = append(line, one[0])
	}
	return b, errors.New("line too long")
}

// receiveInit waits for the configuration. It returns io.EOF when the server
// went away before sending it.
func receiveInit(sock *os.File) (*initConfig, []int, error) {
	head := make([]byte, 4)
	oob := make([]byte, unix.CmsgSpace(4*64))
	n, oobn, _, _, err := unix.Recvmsg(int(sock.Fd()), head, oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
	if err != nil {
		return nil, nil, err
	}
	if n < 4 {
		return nil, nil, io.EOF
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxMessage {
		return nil, nil, errors.New("message too long")
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(sock, body); err != nil {
		return nil, nil, err
	}
	cfg := &initConfig{}
	if err := json.Unmarshal(body, cfg); err != nil {
		return nil, nil, err
	}
	var fds []int
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, nil, err
	}
	for i := range msgs {
		got, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			return nil, nil, err
		}
		fds = append(fds, got...)
	}
	if len(fds) != cfg.Layers {
		return nil, nil, fmt.Errorf("%d descriptors for %d layers", len(fds), cfg.Layers)
	}
	return cfg, fds, nil
}
