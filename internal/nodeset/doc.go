// Package nodeset reads and writes sets of node names as ClusterShell and
// Slurm do: "n[01-16,20],head". It folds, expands and combines them.
//
// A set is a set of names, that is of texts: n1 and n01 are two nodes. Padding
// needs no flag then; a range that grows beyond its padding goes on with more
// digits, so n[08-11] is n08, n09, n10, n11 and n[98-101] is n98 to n101.
//
// Ranges stay ranges: n[1-999999999] costs a few bytes to hold, to count and to
// combine. Only Expand and All make names, and Expand refuses to make too many.
package nodeset
