// Package admit answers requests: now with a plan, queued with a position, or
// never, with every machine of the site counted under a named reason and with
// what to change.
//
// It is pure. It looks at a snapshot of the site and touches nothing; which of
// the fitting machines are taken is the business of a Placer.
package admit
