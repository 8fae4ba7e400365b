package api_test

import (
	"github.com/muster-hpc/muster/api"
	"github.com/muster-hpc/muster/control"
)

var _ api.Service = (*control.Service)(nil)
