package volume

import (
	"errors"
	"hash/fnv"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// Quotas are project quotas, which ext4 and xfs keep when they are mounted with
// prjquota: the directory of a volume carries a number, what is made in it
// inherits the number, and the file system counts and bounds by number. The
// numbers of the kernel's interface are below; package unix does not have them.
const (
	fsGetXattr     = 0x801c581f // FS_IOC_FSGETXATTR
	fsSetXattr     = 0x401c5820 // FS_IOC_FSSETXATTR
	projectInherit = 0x200      // FS_XFLAG_PROJINHERIT

	projectQuota  = 2                 // PRJQUOTA
	getLimit      = ('X'<<8 + 3) << 8 // Q_XGETQUOTA
	setLimit      = ('X'<<8 + 4) << 8 // Q_XSETQLIM
	getState      = ('X'<<8 + 5) << 8 // Q_XGETQSTAT
	counts        = 1 << 4            // FS_QUOTA_PDQ_ACCT
	enforces      = 1 << 5            // FS_QUOTA_PDQ_ENFD
	quotaVersion  = 1                 // FS_DQUOT_VERSION
	projectFlag   = 1 << 1            // FS_PROJ_QUOTA
	limitsOfBytes = 1<<2 | 1<<3       // FS_DQ_BSOFT, FS_DQ_BHARD
	sector        = 512               // what the interface counts blocks in
	firstProject  = 1 << 24           // numbers below are for administrators
	lastProject   = 1<<31 - 1         // and those above for nobody
	tries         = 1000              // numbers looked at before giving up
)

// xattr is struct fsxattr.
type xattr struct {
	flags, extent, extents, project, cow uint32
	_                                    [8]byte
}

// diskQuota is struct fs_disk_quota.
type diskQuota struct {
	version, kind        int8
	fields               uint16
	id                   uint32
	blkHard, blkSoft     uint64
	inoHard, inoSoft     uint64
	blocks, inodes       uint64
	inoTimer, blkTimer   int32
	inoWarns, blkWarns   uint16
	_                    [4]byte
	rtHard, rtSoft, rtOf uint64
	rtTimer              int32
	rtWarns              uint16
	_                    [10]byte
}

// quotaState is struct fs_quota_stat.
type quotaState struct {
	version int8
	flags   uint16
	_       [76]byte
}

// limit numbers a volume's directory and bounds it, and reports whether the bound
// holds. Where the file system keeps no such quotas that is no error.
func (h *HostPath) limit(at string, v muster.Volume) (enforced bool, err error) {
	d, err := openDir(unix.AT_FDCWD, at)
	if err != nil {
		return false, err
	}
	defer d.Close()
	state := stateOf(d)
	if state&counts == 0 {
		return false, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	number, err := h.number(d, v.ID)
	if number == 0 || err != nil {
		return false, ignoreUnsupported(err)
	}
	q := diskQuota{version: quotaVersion, kind: projectFlag, fields: limitsOfBytes, id: number}
	q.blkHard = uint64(v.Quota+sector-1) / sector
	q.blkSoft = q.blkHard
	if err := quotactl(d, setLimit, number, unsafe.Pointer(&q)); err != nil {
		return false, ignoreUnsupported(err)
	}
	return v.Quota > 0 && state&enforces != 0, nil
}

// number is the project number of a volume's directory: the one that it has, or
// one that nobody uses.
func (h *HostPath) number(d *os.File, id muster.VolumeID) (uint32, error) {
	var x xattr
	if err := ioctl(d, fsGetXattr, unsafe.Pointer(&x)); err != nil {
		return 0, err
	}
	if x.project >= firstProject {
		return x.project, nil
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id))
	n := hash.Sum32()
	for range tries {
		n = firstProject + n%(lastProject-firstProject)
		var q diskQuota
		err := quotactl(d, getLimit, n, unsafe.Pointer(&q))
		if errors.Is(err, unix.ENOENT) || err == nil && q.blocks == 0 && q.inodes == 0 && q.blkHard == 0 {
			x.project = n
			x.flags |= projectInherit
			return n, ioctl(d, fsSetXattr, unsafe.Pointer(&x))
		}
		if err != nil {
			return 0, err
		}
		n++
	}
	return 0, nil
}

// unlimit lets go of a volume's number: it is free once nothing carries it.
func (h *HostPath) unlimit(at string) {
	d, err := openDir(unix.AT_FDCWD, at)
	if err != nil {
		return
	}
	defer d.Close()
	var x xattr
	if ioctl(d, fsGetXattr, unsafe.Pointer(&x)) != nil || x.project < firstProject {
		return
	}
	q := diskQuota{version: quotaVersion, kind: projectFlag, fields: limitsOfBytes, id: x.project}
	_ = quotactl(d, setLimit, x.project, unsafe.Pointer(&q))
}

// counted is what the file system says a volume holds.
func (h *HostPath) counted(at string) (bytes int64, ok bool) {
	d, err := openDir(unix.AT_FDCWD, at)
	if err != nil {
		return 0, false
	}
	defer d.Close()
	var x xattr
	if stateOf(d)&counts == 0 || ioctl(d, fsGetXattr, unsafe.Pointer(&x)) != nil || x.project < firstProject {
		return 0, false
	}
	var q diskQuota
	if quotactl(d, getLimit, x.project, unsafe.Pointer(&q)) != nil {
		return 0, false
	}
	return int64(q.blocks) * sector, true
}

// stateOf reports what the file system does about projects; 0: nothing.
func stateOf(d *os.File) uint16 {
	var s quotaState
	if quotactl(d, getState, 0, unsafe.Pointer(&s)) != nil {
		return 0
	}
	return s.flags
}

func ioctl(d *os.File, request uintptr, arg unsafe.Pointer) error {
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, d.Fd(), request, uintptr(arg)); e != 0 {
		return e
	}
	return nil
}

func quotactl(d *os.File, command uintptr, id uint32, arg unsafe.Pointer) error {
	_, _, e := unix.Syscall6(unix.SYS_QUOTACTL_FD, d.Fd(), command|projectQuota, uintptr(id), uintptr(arg), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

func ignoreUnsupported(err error) error {
	for _, e := range []error{unix.EOPNOTSUPP, unix.ENOTTY, unix.ENOSYS, unix.ESRCH, unix.EINVAL, unix.EPERM} {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}
