// Package network makes the networks of machines that are slices of this
// host. Everything of one state directory lives inside one network namespace,
// the rack: a management link per machine, a bridge per cluster for its
// messages, and the sockets through which the server talks to machines. There
// is no route out of the rack, so two clusters cannot meet each other or the
// host except through what the server itself listens on.
package network
