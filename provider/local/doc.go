// Package local makes machines out of slices of this host. A machine is a set
// of namespaces (user, mount, pid, uts, ipc, net, cgroup) in which the image's
// own systemd runs as process 1, with its own cores, memory limit, root file
// system and network. Nothing of it is visible among the host's mounts, and
// killing its process 1 takes everything away at once.
//
// Machines outlive the server: they are found again by their control group.
package local
