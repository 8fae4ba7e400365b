package smart

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asker sends one SCSI command that reads into in, which may be empty. It returns the
// sense data, if there are any, also with errRefused.
type asker func(cdb, in []byte) (sense []byte, err error)

// sgHeader is struct sg_io_hdr of scsi/sg.h.
type sgHeader struct {
	id, direction         int32
	cmdLen, senseMax      uint8
	iovecs                uint16
	dataLen               uint32
	data, cmd, sense      uintptr
	timeoutMS, flags      uint32
	pack                  int32
	user                  uintptr
	status, masked, msg   uint8
	senseLen              uint8
	hostStatus, drvStatus uint16
	resid                 int32
	duration, info        uint32
}

// Values of sg.h and of the kernel's scsi_host.h.
const (
	sgIO          = 0x2285
	sgNone        = -1
	sgFromDevice  = -3
	statusCheck   = 0x02 // CHECK CONDITION: sense data say more
	hostTimedOut  = 0x03 // DID_TIME_OUT
	driverTimeout = 0x06
)

// sg asks a disk that is open.
func sg(fd int) asker {
	return func(cdb, in []byte) ([]byte, error) {
		sense := make([]byte, 64)
		h := &sgHeader{id: 'S', direction: sgNone, cmdLen: uint8(len(cdb)), senseMax: uint8(len(sense)), timeoutMS: uint32(answer.Milliseconds())}
		var pin runtime.Pinner
		defer pin.Unpin()
		pin.Pin(&cdb[0])
		pin.Pin(&sense[0])
		h.cmd, h.sense = uintptr(unsafe.Pointer(&cdb[0])), uintptr(unsafe.Pointer(&sense[0]))
		if len(in) > 0 {
			pin.Pin(&in[0])
			h.direction, h.dataLen, h.data = sgFromDevice, uint32(len(in)), uintptr(unsafe.Pointer(&in[0]))
		}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), sgIO, uintptr(unsafe.Pointer(h)))
		sense = sense[:min(int(h.senseLen), len(sense))]
		switch {
		case errors.Is(errno, unix.ETIMEDOUT) || errno == 0 && (h.hostStatus == hostTimedOut || h.drvStatus&0xf == driverTimeout):
			return nil, ErrSilent
		case errno != 0:
			return nil, errno
		case h.hostStatus != 0 || h.status != 0 && (h.status != statusCheck || !harmless(sense)):
			return sense, errRefused
		}
		return sense, nil
	}
}

// harmless reports whether a command was carried out though there are sense data: their
// key is NO SENSE or RECOVERED ERROR (SPC-5 4.4).
func harmless(sense []byte) bool {
	switch {
	case len(sense) > 2 && sense[0]&0x7f == 0x70:
		return sense[2]&0xf <= 1
	case len(sense) > 2 && sense[0]&0x7f == 0x72:
		return sense[1]&0xf <= 1
	}
	return false
}

// registers finds in sense data what an ATA disk left in LBA mid and LBA high (SAT-5
// 12.2.8).
func registers(sense []byte) (mid, high byte, ok bool) {
	if len(sense) < 8 {
		return 0, 0, false
	}
	switch sense[0] & 0x7f {
	case 0x72: // descriptors, one of which is ATA Status Return
		for d := sense[8:]; len(d) >= 2 && len(d) >= 2+int(d[1]); d = d[2+int(d[1]):] {
			if d[0] == 0x09 && d[1] >= 12 {
				return d[9], d[11], true
			}
		}
	case 0x70: // fixed; 00h/1Dh: ATA PASS-THROUGH INFORMATION AVAILABLE
		if len(sense) >= 14 && sense[12] == 0x00 && sense[13] == 0x1d {
			return sense[10], sense[11], true
		}
	}
	return 0, 0, false
}
