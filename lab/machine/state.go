package machine

// State is how a machine is, as somebody sees who stands before it.
type State string

// States.
const (
	Asleep  State = "asleep"  // off; its card listens
	Booting State = "booting" // on; no operating system has set up a card yet
	Running State = "running" // an operating system has
	Crashed State = "crashed" // on, and it will do nothing more by itself
	Gone    State = "gone"    // its process is not there: the lab has to be mended
)

// event is what happens to a machine.
type event int

const (
	started   event = iota // power came on
	restarted              // it was reset, or it rebooted
	systemUp               // an operating system has set up a card
	panicked               // its kernel is lost
	wentOff                // it switched itself off, or power was taken away
	broke                  // its hardware stopped
)

// next is the state after an event; the same one where the event means nothing.
func next(s State, e event) State {
	on := s != Asleep && s != Gone
	switch e {
	case started:
		if s == Asleep {
			return Booting
		}
	case restarted:
		if on {
			return Booting
		}
	case systemUp:
		if s == Booting {
			return Running
		}
	case panicked, broke:
		if on {
			return Crashed
		}
	case wentOff:
		return Asleep
	}
	return s
}

// On reports whether the machine draws power, as its controller says it.
func (s State) On() bool { return s == Booting || s == Running || s == Crashed }
