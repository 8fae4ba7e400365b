// Package qmp speaks with the monitor of a running QEMU: commands, answers, events.
package qmp
