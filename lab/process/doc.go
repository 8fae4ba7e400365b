// Package process starts the long-lived processes of a lab, finds them again and
// ends them. They outlive the command that started them. A process is found by a
// record with its number and the time of its start, so another that got the same
// number is never taken for it; and by a mark in its environment, which those that
// it starts inherit, so that even what was started and never written down is found.
package process
