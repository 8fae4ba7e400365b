// Package program knows how programs run as black boxes: the commands with their
// placeholders, the job in which they run, what comes back of it, and what follows for the
// record. It does nothing itself: the one who runs a program submits the job and reads it
// back, as themselves. Pure.
package program
