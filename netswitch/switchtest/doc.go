// Package switchtest is the suite that every driver of netswitch.Switch passes.
package switchtest
