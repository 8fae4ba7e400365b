// Package vswitch runs the switch of a lab: an Open vSwitch of its own, in user
// space, which shares no process, socket, file or database with that of the host.
package vswitch
