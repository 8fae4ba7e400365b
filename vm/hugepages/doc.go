// Package hugepages takes huge pages of a host's memory nodes for a virtual machine, and gives them back. Pages that
// the site has set aside and nobody uses are used first; what is missing is taken of the host's free memory.
//
// Whoever takes pages keeps a note, which is written before anything is changed: with it Give gives back what was taken,
// wherever the process that took them was killed. All notes of a killed process are settled before any of them is used.
package hugepages
