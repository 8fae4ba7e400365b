// Package gatewayproc runs a gateway as a process of its own: without a store, and without any key of
// users or authorities. Who may reach what it learns from the server every few seconds; that is good
// for a quarter of an hour, so that people come in by the jump door while the server is away.
// Certificates for the plain door come from the server for each session. Records are kept until the
// server has them.
package gatewayproc
