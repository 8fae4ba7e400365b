// Package agent is the program inside every node: it exchanges the one-time
// token of its seed for a credential, pulls the node's configuration, has it
// applied, and reports stages, facts, usage and the journal.
//
// Run lives as long as its context. It can be killed and started again at any
// time: what it must remember is in a Store, which on a node is a directory on
// tmpfs. When the server does not answer, nothing on the node is disturbed.
//
// Nothing here touches the computer it runs on except through the sources in
// Config, so thousands of agents can live in one process (the fake provider
// does that) and still be real clients over real connections.
package agent
