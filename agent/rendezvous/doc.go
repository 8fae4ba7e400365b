// Package rendezvous lets the ranks of a launch work together without MPI: they meet on
// one of their nodes by TCP, wait for each other, and have the one there, the hub,
// print what all of them found, in the lines that muster-probe prints.
package rendezvous
