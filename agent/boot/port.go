package boot

import "os"

// OpenPort opens the serial port by which the host of a virtual machine speaks to it, as the kernel's command line names
// it; nil: the machine has none.
func OpenPort() (*os.File, error) {
	b, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return nil, err
	}
	if s, err := ParseCmdline(string(b)); err == nil && s.Channel != "" {
		return openPort(s.Channel)
	}
	return nil, nil //nolint:nilnil // there is none
}
