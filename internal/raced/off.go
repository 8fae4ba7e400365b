//go:build !race

// Package raced says to tests whether the race detector watches, which makes everything several
// times slower. What a test repeats with other chances, it repeats less often then.
package raced

// Enabled reports whether the race detector watches.
const Enabled = false
