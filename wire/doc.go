// Package wire holds what crosses a connection: requests and answers of the
// API, and the messages between agents and the server. Server, client, command
// line and agent share these types; the JSON they make is a contract that is
// only added to.
package wire
