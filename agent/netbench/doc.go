// Package netbench measures what programs reach that send by TCP or UDP, with iperf3
// between pairs of nodes.
package netbench
