// Package rootfs puts together the root of a process that has a mount namespace of its
// own, and makes it the root: slices of a host and builds of images have one.
package rootfs
