// Package control holds the use cases behind the API: asking for a cluster,
// giving it back, reaching its nodes, and everything that is listed and shown.
//
// It decides and records; it starts nothing. What it writes to the store is
// carried out by package converge. Every use case acts on behalf of an actor,
// and what the actor may not see is answered like what does not exist.
package control
