// Package switchtest is the suite that every driver of switches.Switch passes.
package switchtest
