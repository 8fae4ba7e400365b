package accel

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// What is tried comes to its end where QEMU translates it, and says no word before the
// time is over where it is too slow.
func TestTried(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath(Program); err != nil {
		t.Skip("needs QEMU: scripts/setup lab")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	began := time.Now()
	if !executes(ctx, false) {
		t.Error("a machine that QEMU translates says nothing")
	}
	t.Logf("said after %v", time.Since(began).Round(time.Millisecond))
	hurry, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if executes(hurry, false) {
		t.Error("a machine is ready in no time")
	}
	began = time.Now()
	t.Logf("KVM works here: %v, known after %v", KVMWorks(t.Context()), time.Since(began).Round(time.Millisecond))
}
