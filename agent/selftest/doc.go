// Package selftest tries a machine's cores and memory for some seconds without a
// tenant: every core computes what is known, memory is written with patterns and read
// back. It finds parts that are broken; that it finds nothing proves little.
package selftest
