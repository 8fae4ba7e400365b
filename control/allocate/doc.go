// Package allocate answers which machines, and takes them. Whoever needs machines
// (a request, the queue, a cluster that grows, a node whose machine is lost, a
// benchmark of idle machines) makes a Demand of it and asks a Site, which is what there
// was to give at one moment. Asking changes nothing and is repeatable; Take asks outside
// of the store's writer and records inside it, again when the site has changed in
// between.
//
// This is the only package that gives a machine to a node.
package allocate
