// Package cli is the command line: one file per command. It reaches a server
// only through package client; building images and checking the host work
// without one.
//
// Commands print tables and one-line messages for people, and with -o json or
// -o yaml the documented form for programs. What went wrong is one line on the
// error output, followed by one line that says what to do; the exit status
// tells programs of which kind it was.
package cli
