package wire

import (
	"net/netip"
	"time"

	"github.com/muster-hpc/muster"
)

// BootReply answers a BootCheckIn: exactly one of Wait, Challenge and Order is set,
// or none, when something was only noted.
type BootReply struct {
	Protocol int `json:"protocol"`
	// Now is the server's time: a machine's own clock may be anything.
	Now       time.Time      `json:"now"`
	Wait      *BootWait      `json:"wait,omitempty"`
	Challenge *BootChallenge `json:"challenge,omitempty"`
	Task      *BootTask      `json:"task,omitempty"`
}

// BootWait tells a machine to ask again later.
type BootWait struct {
	Reason string          `json:"reason"`                // one line for people at the console
	Place  int             `json:"place,omitempty"`       // in the queue, from 1; 0: there is none
	ETA    muster.Duration `json:"eta_seconds,omitempty"` // until it will likely be served; 0: unknown
	Next   muster.Duration `json:"next_seconds"`          // until it should ask again
}

// BootChallenge is a credential that only one TPM can open, for one key of it:
// the two parts of TPM2_ActivateCredential.
type BootChallenge struct {
	Credential []byte `json:"credential"` // TPM2B_ID_OBJECT
	Secret     []byte `json:"secret"`     // TPM2B_ENCRYPTED_SECRET
}

// BootTask is what a machine is to do. It holds secrets (the seed, the key of
// the image): it is never logged, and given to one program once.
type BootTask struct {
	Kind    BootKind         `json:"kind"`
	Machine muster.MachineID `json:"machine,omitempty"`
	Attempt int64            `json:"attempt,omitempty"`
	// GiveUp is how long a machine tries what fails before it goes off.
	GiveUp muster.Duration `json:"give_up_seconds"`
	// Stay is how long a machine stays on once it has told what became of its work, so
	// that somebody can switch it off; then it goes off by itself.
	Stay     muster.Duration `json:"stay_seconds,omitempty"`
	Hostname string          `json:"hostname,omitempty"`
	Image    *BootFiles      `json:"image,omitempty"`
	// Effort is for how long a machine is tested: 2 is twice as long as usual.
	Effort int `json:"effort,omitempty"`
	// Links are the NICs that a node has, or that a test expects to be up.
	Links     []BootLink  `json:"links,omitempty"`
	Bootstrap *Bootstrap  `json:"seed,omitempty"`
	Clean     *CleanOrder `json:"clean,omitempty"`
	// Scratch are disks that the node may use: they are given file systems at each
	// boot, and whatever was on them is gone. A disk that is not named is not touched.
	Scratch []CleanDisk `json:"scratch,omitempty"`
	// Memory: the machine goes on from what it wrote of its memory when it hibernated, as the boot
	// that Bootstrap says, and reads no image. It holds a key.
	Memory *MemoryArea `json:"memory,omitempty"`
	// Files are put into the root file system before its init starts.
	Files []File `json:"files,omitempty"`
	// Masks are units that have no use on this machine.
	Masks []string `json:"masks,omitempty"`
	// Init is the image's first program with its arguments; empty: /sbin/init.
	Init []string `json:"init,omitempty"`
}

// BootFiles is an image as a machine fetches it.
type BootFiles struct {
	ID muster.ImageID `json:"id"`
	// Root is the squashfs of the root file system.
	Root BootFile `json:"root"`
	// Disk is the serial number of a disk of the machine that holds Root: there is nothing to fetch, and
	// of Root only the size is said. Who gives the disk has verified it. "": it is fetched.
	Disk string `json:"disk,omitempty"`
	// Memory is what the image needs beside its own size, in bytes.
	Memory int64 `json:"memory_bytes,omitempty"`
	// Servers have it, https://ADDRESS:PORT, the best first. Empty: the server
	// that was asked.
	Servers []string `json:"servers,omitempty"`
	// Plain is a URL where the same bytes come without encryption, which is quicker. It is
	// tried first: what counts are the digests. "": there is none.
	Plain string `json:"plain,omitempty"`
	// Key lets this boot fetch it, as a bearer token; never part of a URL.
	Key string `json:"key"`
}

// BootFile is one file with what proves its pieces, which are all of one size but for
// the last.
type BootFile struct {
	Path  string `json:"path"` // below BootFilePath
	Size  int64  `json:"size_bytes"`
	Piece int64  `json:"piece_bytes"` // bytes
	// Pieces are the SHA-256 of each.
	Pieces [][]byte `json:"pieces"`
}

// BootLink is one NIC and what it becomes.
type BootLink struct {
	MAC     string       `json:"mac"`
	Name    string       `json:"name"` // mgmt0, msg0
	Address netip.Prefix `json:"address,omitzero"`
	Gateway netip.Addr   `json:"gateway,omitzero"`
	// Default: the gateway is the way to everywhere else.
	Default bool `json:"default,omitempty"`
	MTU     int  `json:"mtu,omitempty"` // 0: as it is
	// Closed are parts of its network that hold other machines: no route leads there.
	Closed []netip.Prefix `json:"closed,omitempty"`
	// Speed is what a test expects at least, in bits/s; 0: any.
	Speed int64 `json:"speed_bps,omitempty"`
}

// HostLine is what the host of a virtual machine says to its agent, by its serial port, on one line.
type HostLine struct {
	Clock time.Time `json:"clock"` // what time it is
	// Join: the machine went on from its saved memory, and is another boot now. Nil: it is what it was.
	Join *HostJoin `json:"join,omitempty"`
}

// HostJoin is the boot that a machine is which went on from its saved memory.
type HostJoin struct {
	Machine muster.MachineID `json:"machine"`
	Attempt int64            `json:"attempt"`
	Token   string           `json:"token"` // one-time: never log it
	Links   []BootLink       `json:"links,omitempty"`
}

// CleanOrder names the disks that are to be erased. A disk that is not named is
// not touched.
type CleanOrder struct {
	Disks []CleanDisk `json:"disks"`
}

// CleanDisk is a disk by what is written on it, as the machine's facts have it, not
// by its place: names of devices change from boot to boot.
type CleanDisk struct {
	Serial string `json:"serial,omitempty"`
	Model  string `json:"model,omitempty"`
	Size   int64  `json:"size_bytes"` // bytes; must agree
	// ReadOnly: it was write-protected when the machine was registered. While it still
	// is, it is not erased.
	ReadOnly bool `json:"read_only,omitempty"`
	// Keep is how much at its end gets no file system, in bytes: the machine may write its memory there.
	Keep int64 `json:"keep_bytes,omitempty"`
}

// MemoryArea is the end of a machine's disk to which it writes its memory when it hibernates.
type MemoryArea struct {
	Disk CleanDisk `json:"disk"`          // with Keep
	Key  []byte    `json:"key,omitempty"` // of the encryption, of 64 bytes: never log it
}

// MemoryKeySize is the size of a MemoryArea's key, in bytes.
const MemoryKeySize = 64

// HibernateOrder has a machine write its memory to its disk and go off. An agent does each once.
type HibernateOrder struct {
	ID     string     `json:"id"` // of the pause: see SyncMark
	Memory MemoryArea `json:"memory"`
}
