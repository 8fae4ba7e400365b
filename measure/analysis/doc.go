// Package analysis says how fast a cluster is: which launches of the probe on
// which nodes in which order, how their lines are read, and what they show about
// nodes, links and the whole, against peers, history and promises.
//
// It is pure: what launches the probe, and where history is kept, is passed in.
// docs/decisions/0009-how-speed-is-measured.md has the contract with the probe.
package analysis
