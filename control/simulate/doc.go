// Package simulate lets a workload run on a site in pretended time, by the rules of the
// calendar and by those of simpler schedulers, and measures what comes of it: use, waiting,
// fairness, and promises that were moved. It is pure.
package simulate
