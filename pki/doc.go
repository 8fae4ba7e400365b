// Package pki makes and checks every credential: the server's authority and
// its certificates, the short-lived certificates of node agents, one-time and
// user tokens, and the SSH authorities of clusters.
//
// Private keys are kept in files that only their owner can read; a key that
// others can read is refused. Nothing here prints or logs a secret.
package pki
