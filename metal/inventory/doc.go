// Package inventory reads files in which a site lists its bare machines: YAML, and
// the CSV of a spreadsheet.
//
// A file is taken as a whole or not at all: every fault of it is told at once, with
// its place. Passwords of management controllers may stand in it; they are kept apart
// from what is said of the machine, so that nothing that prints a machine prints them.
package inventory
