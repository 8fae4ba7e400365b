package spec

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Validate turns a request into a spec with every default filled in, or tells
// every problem. With problems the spec is not to be used.
func Validate(req wire.Request, d Defaults) (muster.Spec, []muster.Problem) {
	return muster.Spec{}, nil
}

// ForImage fills what depends on the image: a request that names no scheduler
// gets the one that the image has. It tells what the image cannot give.
func ForImage(s muster.Spec, image *muster.Image) (muster.Spec, []muster.Problem) {
	return s, nil
}
