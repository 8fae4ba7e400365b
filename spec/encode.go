package spec

import "github.com/muster-hpc/muster/wire"

// Encode writes a request in a format, such that Decode gives the same back.
// Fields that ask for nothing are left out.
func Encode(req wire.Request, format Format) ([]byte, error) { return nil, nil }
