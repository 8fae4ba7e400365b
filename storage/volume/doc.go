// Package volume keeps data that outlives machines and, if wanted, clusters:
// homes, projects' data, and the state of schedulers. A driver knows where a
// volume lies and how nodes get at it; the Manager makes what a cluster needs,
// keeps it for a while after the cluster is gone, and erases it. Clusters join it with
// what opens volumes to machines that mount them over the network.
package volume
