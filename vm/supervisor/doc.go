// Package supervisor is the process that a virtual machine has on its host: it starts the machine's
// QEMU in a jail, holds its monitor, keeps what it prints, and gives it its task. There is one
// for each machine, so that a server may be killed and started again without any machine noticing: [Find]
// finds the supervisor by its record. With its supervisor a machine ends, and its supervisor with it.
//
// The machine's own program asks for the task, with its one-time token, by a serial port: it is on no command
// line, in no file and on no network, and is given once.
package supervisor
