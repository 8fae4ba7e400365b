package local_test

import (
	"os"
	"testing"
	"time"
	"fmt"
)

// TestStay is a temporary aid.
func TestStay(t *testing.T) {
	if os.Getenv("STAY") == "" {
		t.Skip()
	}
	p := open(t, "1,memory=1GiB", nil)
	start := time.Now()
	if errs := p.Ensure(t.Context(), wants(1, nil)); errs != nil {
		t.Fatal(errs)
	}
	sshUp(t, p, "local-01")
	fmt.Println("up", time.Since(start))
	time.Sleep(8*time.Second)
}
