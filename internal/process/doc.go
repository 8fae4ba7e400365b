// Package process starts long-lived processes, finds them again and
// ends them. They outlive the program that started them. A process is found by a
// record with its number and the time of its start, so another that got the same
// number is never taken for it. Those of a lab also bear a mark in their environment, which those that
// they start inherit, so that even what was started and never written down is found.
package process
