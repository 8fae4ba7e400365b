// Package switches says what Muster asks of a network switch: which port is in
// which network, which ports are closed, what hangs on them. What is asked for is
// the desired state, not the step: it may be asked for again, and it is read back from the
// switch before it counts. Drivers are below; metal/switches/switchtest is their suite.
package switches
