// Package converge makes what is so become what is wanted.
//
// Its heart is two pure functions, Decide for a cluster and DecideMachine for
// a machine: records, observations and the time go in, a list of actions comes
// out. They read no clock and touch nothing, so every rule is a table test and
// every promise a property test.
//
// Around them one loop runs each object by itself and many objects at once.
// A run reads the records, decides, and, when records must change, decides
// again inside the transaction that changes them: what happened in between (a
// node joined, the user deleted the cluster) is never overwritten. Only after
// the commit is a provider touched. Provider calls run beside the loop, one at
// a time for each machine, so that a slow machine delays nobody; their outcome
// wakes the object again.
//
// Nothing that matters is kept in memory only. After a crash the records say
// what was meant, the provider says what is, and the same functions find the
// way from one to the other.
package converge
