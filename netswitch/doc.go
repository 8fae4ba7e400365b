// Package netswitch says what Muster asks of a network switch: which port is in
// which network, which ports are closed, what hangs on them. What is asked for is
// the wish, not the step: it may be asked for again, and it is read back from the
// switch before it counts. Drivers are below; netswitch/switchtest is their suite.
package netswitch
