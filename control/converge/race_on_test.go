//go:build race

package converge_test

// raced means that the race detector makes everything several times slower.
const raced = true
