package api_test

import (
	"sync"
	"testing"

	"github.com/muster-hpc/muster/api"
	"github.com/muster-hpc/muster/control"
)

var _ api.Service = (*control.Service)(nil)

// Whoever shuts a server down need not know whether somebody else does.
func TestCloseByMany(t *testing.T) {
	t.Parallel()
	a := api.New(api.Config{Version: "v1"})
	var all sync.WaitGroup
	for range 50 {
		all.Go(a.Close)
	}
	all.Wait()
	a.Close()
}
