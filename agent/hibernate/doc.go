// Package hibernate writes the memory of a bare machine to an area at the end of one of its own
// disks, and has the kernel of a later boot go on from there. The area is encrypted by dm-crypt with
// a key that the server made for this pause and that lies on no disk of the machine:
//
//	| scratch, by dm-linear ... | swap: the memory | note, 4 KiB |
//	                            |<-------- dm-crypt ----------->|
//
// The note is what the first program of the later boot leaves to the agent that goes on: which boot
// it is now, and a token to join with.
package hibernate
