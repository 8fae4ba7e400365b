// Package agentserver is the server's side of the conversation with the agents in
// the nodes: a machine exchanges its one-time token for a certificate, fetches
// its configuration, waits for a newer one, and reports how it is.
//
// An agent is not trusted. It proves which machine and which attempt it speaks
// for with its certificate, can read its own node's configuration and nothing
// else, and is told 410 Gone as soon as its attempt is over. What it says about
// itself is kept in memory (presence), its journal in bounded files; a report
// never writes the store.
//
// No lock is held across a read, a write or a call, so one slow agent delays
// nobody.
package agentserver
