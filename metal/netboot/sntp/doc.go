// Package sntp answers machines that ask for the time: the nodes of a cluster need a common
// one, and have no other way to one than the server. It serves one interface and its
// networks, by NTP's simplest form (RFC 5905, section 14).
package sntp
