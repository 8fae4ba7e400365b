// Package ovs drives an Open vSwitch that runs in user space, by the programs that
// come with it. Everything stands in the switch's own database, in one transaction,
// so it is true again after the switch was restarted.
//
// A closed port is put where nothing is: into a network that only closed ports are
// in, isolated from each other, and its link is switched off besides. That it passes
// nothing is asked of the switch itself, by following a frame through it.
package ovs
