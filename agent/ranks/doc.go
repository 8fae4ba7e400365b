// Package ranks lets the ranks of a launch work together without MPI: they meet at
// the first one by TCP, wait for each other, and have it print what all of them
// found, in the lines that muster-probe prints.
package ranks
