package spec

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Decode reads one request. The error is a *muster.Error with code EInvalid
// that lists every problem; the request then holds what could be read. places
// tells where each field stands, so that problems found later can say so.
func Decode(data []byte, format Format) (req wire.Request, places Places, err error) {
	return wire.Request{}, nil, nil
}

// Defaults fill what a request leaves open.
type Defaults struct {
	Project    string   // empty: the caller decides later
	Users      []string // who may log in when the request names nobody
	Image      string   // default hpc
	Head       muster.HeadMode
	Scheduler  muster.Scheduler // empty: ForImage decides
	Placement  muster.Placement
	Validate   muster.Validation
	Egress     muster.Egress
}
