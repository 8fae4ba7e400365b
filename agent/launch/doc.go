// Package launch runs programs that measure, on several nodes at once, through
// mpirun over SSH as an account of their own. It needs no scheduler: what is
// measured is not in one yet.
package launch
