// Package topology knows where the machines of a site stand and how they are joined. It
// reads and writes descriptions of that (Muster's own, and those of Slurm), finds where
// each machine stands by them and by registrations, computes what communication between
// machines costs, and chooses those for which it costs least. It is pure.
package topology
