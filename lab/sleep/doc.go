// Package sleep is the network card of a machine that is off: it holds the
// machine's port, sees what comes in and wakes the machine when that is the magic
// packet. A frame that nobody holds the port for is lost, as it is with a real
// card that has no standby power.
package sleep
