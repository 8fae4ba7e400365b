// Package boot is the agent as the first process of a machine: what happens
// between a kernel that starts and the image's own init. It is started by the
// kernel from the initramfs ([Init]); everything it knows at first is on the
// kernel's command line, and none of that is secret.
//
// It goes through stages, each of them one line on the console, timed by the
// kernel's clock: drivers, address, hello, image, root, switch. What fails is
// said on the console and to the server, and tried again as long as the order
// allows; then the machine goes off. There is no shell, whatever happens.
//
// Outside effects are behind small interfaces (Kernel, Network, Source, Disk), so
// that what decides is tested without a machine.
package boot
