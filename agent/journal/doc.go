// Package journal follows the journal of the node's systemd, so that what
// happened on a node can be read when its machine is gone.
//
// It runs journalctl and reads its JSON: that works with every version of the
// files below /run/log/journal, resumes after a cursor, and costs nothing
// while nothing is written.
package journal
