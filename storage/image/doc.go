// Package image makes, keeps and checks images: root file systems with a
// manifest, named by their content.
//
// A Recipe says what an image is made of. A Store builds it with mmdebstrap and
// mksquashfs inside mount and process namespaces of their own, so that neither
// a failure nor a kill leaves a mount or a process behind, and publishes the
// result by one rename. Everything about an image is in its manifest, a
// muster.Image.
package image
