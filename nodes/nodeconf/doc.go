// Package nodeconf builds the one document that tells a node everything it
// must know: names, users, keys, scheduler. Build, Share and Node are pure: records and
// secrets in, wire.NodeConfig out. A Maker reads these from the store, and numbers what
// comes of them. All of it is known before the first node boots, so no node waits for
// another.
package nodeconf
