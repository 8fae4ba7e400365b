package local

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/provider/local/network"
	"golang.org/x/sys/unix"
)

// countCost counts what the kernel keeps for a machine. It is done when a host is
// short, not before: large tables take a second to read.
func (p *Provider) countCost(m *machine) (cost, error) {
	c := cost{machine: m.id}
	m.mu.Lock()
	vm := m.vm
	m.mu.Unlock()
	if vm {
		return c, nil // its QEMU may make nothing that counts; its supervisor is in the host's network
	}
	pids, err := p.groups.processes(string(m.id))
	if err != nil {
		return c, err
	}
	spaces := networksOf(pids)
	defer func() {
		for _, f := range spaces {
			_ = f.Close()
		}
	}()
	c.networks = len(spaces)
	for _, f := range spaces {
		err = errors.Join(err, count(f, &c))
	}
	return c, err
}

// networksOf opens the network namespaces that processes are in, hold by a descriptor
// or have mounted.
func networksOf(pids []int) map[uint64]*os.File {
	found := map[uint64]*os.File{}
	add := func(f *os.File) {
		var st unix.Stat_t
		if unix.Fstat(int(f.Fd()), &st) != nil || found[st.Ino] != nil || !isNetwork(f) {
			_ = f.Close()
			return
		}
		found[st.Ino] = f
	}
	mounts := map[string]bool{} // namespaces of mounts that were looked at
	for _, pid := range pids {
		proc := fmt.Sprintf("/proc/%d", pid)
		if f, err := os.Open(proc + "/ns/net"); err == nil {
			add(f)
		}
		fds, _ := os.ReadDir(proc + "/fd")
		for _, fd := range fds {
			at := filepath.Join(proc, "fd", fd.Name())
			if to, err := os.Readlink(at); err == nil && strings.HasPrefix(to, "net:[") {
				if f, err := os.Open(at); err == nil {
					add(f)
				}
			}
		}
		if of, err := os.Readlink(proc + "/ns/mnt"); err == nil && !mounts[of] {
			mounts[of] = true
			for _, f := range mountedNetworks(proc) {
				add(f)
			}
		}
	}
	return found
}

// isNetwork reports whether a file is a network namespace: what a tenant's mount or
// descriptor leads to may be anything.
func isNetwork(f *os.File) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil || st.Type != unix.NSFS_MAGIC {
		return false
	}
	kind, err := unix.IoctlRetInt(int(f.Fd()), unix.NS_GET_NSTYPE)
	return err == nil && kind == unix.CLONE_NEWNET
}

// mountedNetworks opens the namespaces that a process sees among its mounts (as `ip
// netns add` makes them). No link in there leads out of its root.
func mountedNetworks(proc string) []*os.File {
	info, err := os.Open(proc + "/mountinfo")
	if err != nil {
		return nil
	}
	defer func() { _ = info.Close() }()
	root, err := unix.Open(proc+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(root) }()
	var out []*os.File
	for lines := bufio.NewScanner(info); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 5 || !strings.HasPrefix(f[3], "net:[") {
			continue
		}
		how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_SYMLINKS}
		if fd, err := unix.Openat2(root, strings.TrimPrefix(unescapeMount(f[4]), "/"), how); err == nil {
			out = append(out, os.NewFile(uintptr(fd), f[4]))
		}
	}
	return out
}

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// count adds what a network namespace holds.
func count(ns *os.File, c *cost) error {
	done := make(chan error, 1)
	network.OwnThread(func() {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		neighbours, err1 := countDump(unix.NETLINK_ROUTE, unix.RTM_GETNEIGH, ndmsg(unix.AF_UNSPEC), nil)
		forwarding, err2 := countDump(unix.NETLINK_ROUTE, unix.RTM_GETNEIGH, ndmsg(unix.AF_BRIDGE), nil)
		c.neighbours += neighbours
		c.forwarding += forwarding
		// Sockets are told by a module that a host may lack; connections are counted
		// where anything tracks them.
		_, _ = countDump(unix.NETLINK_SOCK_DIAG, sockDiag, packetRequest(), func(m []byte) { c.rings += ringBytes(m) })
		if b, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_count"); err == nil {
			n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
			c.tracked += n
		}
		done <- errors.Join(err1, err2)
	})
	return <-done
}

// ndmsg is the kernel's struct ndmsg, for one family.
func ndmsg(family byte) []byte { return append([]byte{family}, make([]byte, 11)...) }

const (
	sockDiag       = 20 // SOCK_DIAG_BY_FAMILY of linux/sock_diag.h
	packetShowRing = 4  // PACKET_SHOW_RING_CFG of linux/packet_diag.h
	packetRings    = 2  // PACKET_DIAG_RX_RING, and TX_RING after it
)

// packetRequest is the kernel's struct packet_diag_req.
func packetRequest() []byte {
	b := []byte{unix.AF_PACKET, 0, 0, 0}
	b = binary.NativeEndian.AppendUint32(b, 0) // of every inode
	b = binary.NativeEndian.AppendUint32(b, packetShowRing)
	return append(b, make([]byte, 8)...)
}

// ringBytes reads how much the rings of a packet socket take, from a struct
// packet_diag_msg and its attributes.
func ringBytes(m []byte) int64 {
	const head = 16 // family, type, number, inode, cookie
	var sum int64
	for at := head; at+4 <= len(m); {
		size, kind := int(binary.NativeEndian.Uint16(m[at:])), binary.NativeEndian.Uint16(m[at+2:])
		if size < 4 || at+size > len(m) {
			break
		}
		if (kind == packetRings || kind == packetRings+1) && size >= 12 {
			// struct packet_diag_ring begins with the size and the number of its blocks.
			sum += int64(binary.NativeEndian.Uint32(m[at+4:])) * int64(binary.NativeEndian.Uint32(m[at+8:]))
		}
		at += (size + 3) &^ 3
	}
	return sum
}

// countDump asks the kernel for a list and counts its entries, without keeping them.
func countDump(protocol int, kind uint16, request []byte, each func([]byte)) (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	msg := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(request)))
	msg = binary.NativeEndian.AppendUint16(msg, kind)
	msg = binary.NativeEndian.AppendUint16(msg, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	msg = append(append(msg, make([]byte, 8)...), request...)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	n := 0
	buf := make([]byte, 64<<10)
	for {
		got, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return n, err
		}
		for b := buf[:got]; len(b) >= unix.NLMSG_HDRLEN; {
			size := int(binary.NativeEndian.Uint32(b))
			if size < unix.NLMSG_HDRLEN || size > len(b) {
				break
			}
			switch binary.NativeEndian.Uint16(b[4:]) {
			case unix.NLMSG_DONE:
				return n, nil
			case unix.NLMSG_ERROR:
				if size >= unix.NLMSG_HDRLEN+4 {
					return n, unix.Errno(-int32(binary.NativeEndian.Uint32(b[unix.NLMSG_HDRLEN:])))
				}
				return n, unix.EIO
			default:
				n++
				if each != nil {
					each(b[unix.NLMSG_HDRLEN:size])
				}
			}
			b = b[min((size+3)&^3, len(b)):]
		}
	}
}
