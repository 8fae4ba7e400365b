// Package tftp serves the files of boot loaders to firmware that can do no better.
// Reading only, only files that it was given by name, held in memory, only to
// the networks and by the interface that were given.
//
// It is a server of its own because the ones there are know no windows (RFC 7440),
// hold 128 KiB for every transfer, and take as many transfers as are asked for:
// three things that matter when a room of machines starts at once.
package tftp
