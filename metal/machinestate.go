package metal

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
)

// machineState is one approved machine as the provider knows it.
type machineState struct {
	id muster.MachineID

	// op is held while something is done that must not be done twice at once:
	// cleaning, a test.
	op sync.Mutex
	// working: somebody here waits for what the machine does for the site. Of a boot for that
	// which a server began that has ended, nobody does.
	working atomic.Bool
	// orders is held for writing while it is cut off: whoever orders a boot meanwhile is
	// refused, so that none takes the proof away.
	orders sync.RWMutex

	mu  sync.Mutex
	reg muster.Registration
	// reading is the last look at its power, and when that was; lookErr is why a later
	// look failed.
	reading power.Reading
	readAt  time.Time
	lookErr error
	failing time.Time     // since when looks fail
	looking chan struct{} // closed when the look under way is over; nil: there is none
	// going ends the going off that is under way; nil: there is none.
	going context.CancelFunc
	// listed: it was among the machines of the site once.
	listed bool
	// fault is why the last thing it was to do was not done.
	fault error
	// cut: its ports are closed and nobody can tell whether it is off.
	cut bool
}

func (u *machineState) set(r muster.Registration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reg = r
}

func (u *machineState) registration() muster.Registration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reg
}

// lost is after how long a machine whose controller does not answer is not listed any
// more.
const lost = 5 * time.Minute

// facts are what the machine is. It is not ready for use before it told them, nor
// while its controller is away.
func (u *machineState) facts(now time.Time) (muster.Facts, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reg.Facts == nil || !u.failing.IsZero() && now.Sub(u.failing) > lost {
		return muster.Facts{}, false
	}
	f := *u.reg.Facts
	f.Class, f.Rack, f.Service = u.reg.Class, u.reg.Rack, u.reg.Service
	f.Leaf, f.Chassis = u.reg.Leaf(), u.reg.Chassis
	if f.Class == "" {
		// What lost a memory module is of the same class as before until somebody
		// accepts what it is now.
		f.Class = className(*cmp.Or(u.reg.Accepted, u.reg.Facts))
	}
	f.Disk = 0
	for _, d := range f.Disks {
		f.Disk += d.Size
	}
	f.NICs = append([]muster.NIC(nil), f.NICs...)
	for i := range f.NICs {
		f.NICs[i].Use = ""
		for _, n := range u.reg.NICs {
			if mac, err := muster.ParseMAC(f.NICs[i].MAC); n.MAC == f.NICs[i].MAC || err == nil && n.MAC == mac {
				f.NICs[i].Use = n.Use
			}
		}
	}
	return f, true
}

// look files a look at the machine's power. It reports whether that is news.
func (u *machineState) look(r power.Reading, err error, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil {
		u.lookErr = err
		if u.failing.IsZero() {
			u.failing = now
		}
		return false
	}
	news := u.reading.State != r.State
	u.reading, u.readAt, u.lookErr, u.failing = r, now, nil, time.Time{}
	if r.State != power.Unknown {
		u.cut = false
	}
	return news
}

// known reports whether the machine's power was looked at, or could not be.
func (u *machineState) known() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.readAt.IsZero() || u.lookErr != nil
}

// cancelPowerOff ends the going off that is under way: the machine has something to do again.
func (u *machineState) cancelPowerOff() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.going != nil {
		u.going()
		u.going = nil
	}
}

func (u *machineState) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fault = err
}
