// Package slurm renders the configuration of a cluster's scheduler: pure text
// from what the server knows, by the version of Slurm in the image.
//
// Clusters are configless (only the head has files; the others ask it) and
// their compute nodes are dynamic: they can come and go without a restart.
// Nodes live in namespaces, where Slurm cannot manage control groups; it is
// told so where it understands that, and uses nothing that needs them.
package slurm
