package lab_test

import (
	"context"
	"os/signal"
	"syscall"
)

// notify ends with the signal by which a lab ends its machines.
func notify() (context.Context, func()) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM)
}
