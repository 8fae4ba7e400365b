package seccomp

import "slices"

// Door is something of the kernel that is closed unless the site opens it.
type Door struct {
	Name string
	What string // in a line, for people
	// Family is the family of sockets that it opens, 0 for none.
	Family int
	// Calls are the system calls that it opens, by their names.
	Calls []string
}

// Doors are all there are. Families of sockets that are neither here nor among
// those always open (unix, inet, inet6, netlink) stay closed.
func Doors() []Door {
	return []Door{
		{Name: "packet", What: "packet sockets (tcpdump): their rings are memory that no machine is charged for", Family: 17},
		{Name: "io_uring", What: "io_uring: reaches files and sockets past every filter of calls",
			Calls: []string{"io_uring_setup", "io_uring_enter", "io_uring_register"}},
		{Name: "keys", What: "the kernel's keyrings: counted for each user of the host, not for each machine",
			Calls: []string{"add_key", "request_key", "keyctl"}},
		{Name: "perf", What: "perf_event_open: counters are few, and show what neighbours do",
			Calls: []string{"perf_event_open"}},
		{Name: "vsock", What: "vsock sockets: they reach the hypervisor past every network", Family: 40},
		{Name: "alg", What: "the kernel's ciphers by sockets", Family: 38},
		{Name: "rds", What: "RDS sockets", Family: 21},
		{Name: "smc", What: "SMC sockets", Family: 43},
		{Name: "xdp", What: "XDP sockets", Family: 44},
	}
}

// always are the families of sockets that every program needs: unix, inet, inet6, netlink.
func always() []int { return []int{1, 2, 10, 16} }

// Names are the names of all doors.
func Names() []string {
	var out []string
	for _, d := range Doors() {
		out = append(out, d.Name)
	}
	return out
}

// Unknown returns those of the names that are no door.
func Unknown(names []string) []string {
	known := Names()
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(known, n) })
}

// isOpen reports whether a door is among those that are open.
func isOpen(open []string, d *Door) bool {
	return slices.Contains(open, d.Name)
}
