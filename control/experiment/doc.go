// Package experiment designs experiments: it reads the file that people write, makes cells of
// the matrix, orders the launches by chance, says which is next and when it is enough, and
// sums up what they showed. It does nothing itself and asks nobody: the same file, seed and
// record give the same answer. Pure.
package experiment
