package bmc

import (
	"encoding/binary"
	"time"

	"github.com/muster-hpc/muster/metal/power/rmcp"
)

// Numbers of boot options (28.12).
const (
	bootInProgress = 0
	bootKeepFlags  = 3
	bootInfo       = 4
	bootFlags      = 5

	flagsValid   = 0x80
	flagsPersist = 0x40
	flagsUEFI    = 0x20
)

// command carries one out. s is the session that it came in.
func (b *BMC) command(s *ipmiSession, q rmcp.Request) (rmcp.Code, []byte) {
	b.mu.Lock()
	role := s.role
	b.mu.Unlock()
	switch q.Function {
	case rmcp.App:
		return b.appCommand(s, q)
	case rmcp.Chassis:
		if q.Command != rmcp.GetChassisStatus && role < rmcp.RoleOperator {
			return rmcp.CodeNoPrivilege, nil
		}
		return b.chassisCommand(q)
	}
	return rmcp.CodeUnknown, nil
}

func (b *BMC) appCommand(s *ipmiSession, q rmcp.Request) (rmcp.Code, []byte) {
	switch q.Command {
	case rmcp.GetDeviceID:
		// Device 1, revision 1, firmware 1.00, IPMI 2.0, a chassis device, no
		// maker's number.
		return rmcp.CodeDone, []byte{1, 1, 1, 0, 0x02, 0x80, 0, 0, 0, 0, 0}
	case rmcp.GetSystemGUID:
		return rmcp.CodeDone, b.guid[:]
	case rmcp.GetChannelCapabilities:
		return channelCapabilities(q.Data)
	case rmcp.GetCipherSuites:
		return cipherSuites(q.Data)
	case rmcp.SetPrivilege:
		if len(q.Data) < 1 {
			return rmcp.CodeLength, nil
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		want := q.Data[0] & 0x0f
		if most := s.Role & 0x0f; want > b.cfg.Role || (most != 0 && want > most) {
			return rmcp.CodeRoleExceeds, nil
		}
		if want != 0 {
			s.role = want
		}
		return rmcp.CodeDone, []byte{s.role}
	case rmcp.CloseSession:
		if len(q.Data) < 4 {
			return rmcp.CodeLength, nil
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		id := binary.LittleEndian.Uint32(q.Data)
		if id != s.SystemID { // nobody closes another's
			return rmcp.CodeNoSession, nil
		}
		delete(b.ipmi, id)
		return rmcp.CodeDone, nil
	}
	return rmcp.CodeUnknown, nil
}

func (b *BMC) chassisCommand(q rmcp.Request) (rmcp.Code, []byte) {
	switch q.Command {
	case rmcp.GetChassisStatus:
		on, err := b.says(b.ctx)
		if err != nil {
			return rmcp.CodeUnspecified, nil
		}
		state := byte(0)
		if on {
			state = 1
		}
		return rmcp.CodeDone, []byte{state, 0, 0}
	case rmcp.ChassisControl:
		return b.control(q.Data)
	case rmcp.SetBootOptions:
		return b.setOption(q.Data)
	case rmcp.GetBootOptions:
		return b.getOption(q.Data)
	}
	return rmcp.CodeUnknown, nil
}

func (b *BMC) control(data []byte) (rmcp.Code, []byte) {
	if len(data) < 1 {
		return rmcp.CodeLength, nil
	}
	if b.Broken().Busy {
		return rmcp.CodeBusy, nil
	}
	orders := map[byte]action{0: actOff, 1: actOn, 2: actCycle, 3: actReset, 5: actPress}
	what, ok := orders[data[0]&0x0f]
	if !ok {
		return rmcp.CodeField, nil
	}
	if err := b.perform(b.ctx, what); err != nil {
		b.log.Error("chassis command failed", "order", what, "error", err)
		return rmcp.CodeUnspecified, nil
	}
	return rmcp.CodeDone, nil
}

func (b *BMC) setOption(data []byte) (rmcp.Code, []byte) {
	if len(data) < 1 {
		return rmcp.CodeLength, nil
	}
	if b.Broken().Busy {
		return rmcp.CodeBusy, nil
	}
	number, data := data[0]&0x7f, data[1:]
	switch number {
	case bootInProgress, bootInfo:
		return rmcp.CodeDone, nil
	case bootKeepFlags:
		if len(data) < 1 {
			return rmcp.CodeLength, nil
		}
		o := b.override()
		o.keep = data[0]&0x08 != 0
		if o.keep {
			o.until = time.Time{}
		}
		b.setBoot(o)
		return rmcp.CodeDone, nil
	case bootFlags:
		if len(data) < 5 {
			return rmcp.CodeLength, nil
		}
		b.setBoot(b.flags(data))
		return rmcp.CodeDone, nil
	}
	return rmcp.CodeNoParameter, nil
}

// flags reads parameter 5.
func (b *BMC) flags(data []byte) override {
	o := override{keep: b.override().keep}
	if data[0]&flagsValid == 0 {
		return o
	}
	o.set, o.once, o.UEFI = true, data[0]&flagsPersist == 0, data[0]&flagsUEFI != 0
	o.Device = devices()[data[1]>>2&0x0f]
	if !o.keep {
		o.until = b.clock.Now().Add(flagTime)
	}
	return o
}

func (b *BMC) getOption(data []byte) (rmcp.Code, []byte) {
	if len(data) < 3 {
		return rmcp.CodeLength, nil
	}
	number := data[0] & 0x7f
	answer := []byte{1, number}
	o := b.override()
	switch number {
	case bootInProgress:
		return rmcp.CodeDone, append(answer, 0)
	case bootKeepFlags:
		keep := byte(0)
		if o.keep {
			keep = 0x08
		}
		return rmcp.CodeDone, append(answer, keep)
	case bootInfo:
		return rmcp.CodeDone, append(answer, 0, 0)
	case bootFlags:
		var first, second byte
		if o.set {
			first = flagsValid
			if !o.once {
				first |= flagsPersist
			}
			if o.UEFI {
				first |= flagsUEFI
			}
			for n, d := range devices() {
				if d == o.Device || (o.Device == DeviceHTTP && d == DeviceNetwork) {
					second = n << 2
				}
			}
		}
		return rmcp.CodeDone, append(answer, first, second, 0, 0, 0)
	}
	return rmcp.CodeNoParameter, nil
}

// devices are the numbers of parameter 5.
func devices() map[byte]Device {
	return map[byte]Device{0: DeviceDefault, 1: DeviceNetwork, 2: DeviceDisk, 6: DeviceSetup}
}
