// Package wipe erases disks, proves that they are empty, and tries whether they
// can be read. A disk is found by what is written on it ([Match]), never by the name
// of its device, and one that nobody names is not touched.
package wipe
