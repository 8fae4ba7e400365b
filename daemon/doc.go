// Package daemon puts the parts of the server together: it opens the state
// directory, makes every part with what it needs of the others, and runs them
// until its context ends. It holds no logic of its own.
package daemon
