// Package machine is one machine of a lab: a process that lives as long as the
// machine stands in its rack. While the machine sleeps it holds its ports and waits
// for the magic packet or a command of its management controller; then it runs
// QEMU. It is spoken to by a socket, and knows the faults that can be made.
package machine
