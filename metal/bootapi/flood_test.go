package bootapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// Hellos that come slowly keep only places of their own address; where all places are
// taken nobody waits in memory.
func TestSlowAskers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, d, _ := rig(t)
		h := d.Handler()
		ask := func(from string, body io.Reader) int {
			q := httptest.NewRequest(http.MethodPost, "/", body)
			q.RemoteAddr = from + ":1000"
			w := httptest.NewRecorder()
			h.ServeHTTP(w, q)
			return w.Code
		}
		var slow sync.WaitGroup
		var ends []*io.PipeWriter
		hold := func(from string) {
			r, w := io.Pipe()
			ends = append(ends, w)
			slow.Go(func() { ask(from, r) })
			synctest.Wait()
		}
		for range maxOfOne {
			hold("10.0.0.1")
		}
		if code := ask("10.0.0.1", strings.NewReader("x")); code != http.StatusTooManyRequests {
			t.Errorf("one more of the same address: %d", code)
		}
		if code := ask("10.0.0.2", strings.NewReader("x")); code != http.StatusBadRequest {
			t.Errorf("another address: %d", code)
		}
		for i := maxOfOne; i < maxAtOnce; i++ {
			hold(fmt.Sprintf("10.0.1.%d", i/maxOfOne))
		}
		if code := ask("10.0.0.2", strings.NewReader("x")); code != http.StatusServiceUnavailable {
			t.Errorf("one more than all: %d", code)
		}
		for _, w := range ends {
			_ = w.Close()
		}
		slow.Wait()
		if code := ask("10.0.0.1", strings.NewReader("x")); code != http.StatusBadRequest {
			t.Errorf("when they are through: %d", code)
		}
	})
}
