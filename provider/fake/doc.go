// Package fake is a provider of machines that do not exist, for tests and for
// trying out a large site on a small one. Its hardware boots after a random
// delay and fails at given rates; its agents are real clients that join,
// configure and report over real connections.
//
// A World is the hardware. It knows nothing of servers and outlives them:
// open a Provider on it, throw that away as a crash would, open another, and
// the machines are as they were left.
package fake
