// Package nodeconf builds the one document that tells a node everything it
// must know: names, users, keys, scheduler. It is pure: records and secrets in,
// wire.NodeConfig out. All of it is known before the first node boots, so no
// node waits for another.
package nodeconf
