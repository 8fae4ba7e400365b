// Package diskbench measures where a node's programs put their files for a while, with
// fio. It writes files only, and never to a block device: a node is a tenant's, and
// what lies on its disks is not ours.
package diskbench
