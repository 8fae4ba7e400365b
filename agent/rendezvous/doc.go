// Package rendezvous lets the ranks of a launch work together without MPI: they meet on
// one of their nodes by TCP, wait for each other, and have the one there, the hub,
// print what all of them found, in the lines that muster-probe prints.
//
// Only one rank of a launch prints: mpirun passes output on in pieces, as they come, and
// pieces of several ranks' lines would stand within each other.
package rendezvous
