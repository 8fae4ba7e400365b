// Package configure makes a node what its configuration says: names, users,
// keys, SSH, firewall, MPI, scheduler. It writes files itself and starts
// programs only where a file is not enough, because a cluster's start waits
// for it: everything that can go on at the same time does.
//
// Apply is idempotent. What it made is remembered in a small file, so that a
// user or a node that is gone from a newer configuration is taken away.
package configure
