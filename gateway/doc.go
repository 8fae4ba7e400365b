// Package gateway is an SSH server that lets users reach nodes of their clusters with their own
// keys and any SSH client, and nothing else.
//
// A client comes through one of three doors. At the jump door it opens a channel to port 22 of a
// node (ssh -J), and what it says to the node the gateway cannot read. At the plain door the
// user name says where to (CLUSTER+USER): the gateway logs in to the node with a certificate for
// this session and passes channels and requests on, so that it could read them. At the straight door
// a ticket of the API lets one connection through to a node: in the kernel (package flow), or with its bytes
// spliced.
//
// The gateway holds no user's key and no authority. What a user may do, and certificates, come
// from a Site.
package gateway
