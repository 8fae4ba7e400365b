// Package jobend ends what a job of the scheduler left behind on a node that has no control
// groups for jobs: processes that were put in a session of their own, or whose parent has
// ended.
package jobend
