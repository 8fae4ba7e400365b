// Package flow lets single TCP connections through this kernel to another machine: an nftables map
// says of a client's address and port which node they lead to, and connection tracking translates
// the addresses, counts the bytes and reports the end. No process stands between the two ends.
//
// The rules are in a table of their own, in a network namespace where nothing else follows
// connections. Only connections that were let in are tracked: neither a client nor a node can fill
// the table of connections.
package flow
