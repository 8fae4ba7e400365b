// Package initramfs makes the archive that a machine's kernel starts with: the
// agent as /init, and the drivers of that one kernel which a machine needs until
// its image is there. Nothing in it is secret, and nothing is chosen by time or
// place: the same agent and the same modules give the same bytes.
//
// Which drivers are in it is a list of kinds ([Wanted]): network cards of servers
// and virtual machines, disks, what the root file system needs, TPMs, management
// controllers. What a module needs and which devices it is for is read from the
// modules themselves, so that the archive can be made of a package that was only
// unpacked, too. Modules are stored plain: the archive as a whole compresses
// better, and neither agent nor kernel has to know how modules are compressed.
package initramfs
