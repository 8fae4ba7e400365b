package fake

import (
	"testing"
	"time"
)

// Agents come back quickly, and do not keep a server that is down busy.
func TestPause(t *testing.T) {
	t.Parallel()
	if first := pause(1); first > 50*time.Millisecond {
		t.Errorf("the first pause is %v", first)
	}
	for n := 2; n < 100; n++ {
		if was, is := pause(n-1), pause(n); is < was || is > 2*time.Second {
			t.Errorf("after %d failures %v, after one more %v", n-1, was, is)
		}
	}
	if long := pause(1000); long != 2*time.Second {
		t.Errorf("after a thousand failures %v", long)
	}
}
