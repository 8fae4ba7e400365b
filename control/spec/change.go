package spec

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// ReadScale reads a request to change the size of a cluster, which it names: the element
// <scale> in XML. The error is a *muster.Error with code EInvalid that lists every problem
// of the text; whether the sizes make sense is judged where they are carried out.
func ReadScale(data []byte, format Format) (wire.ScaleRequest, error) {
	r, places, problems := decodeAs[wire.ScaleRequest](data, format, kind{"scale", "cluster and a size"})
	return r, changeError(places, problems, r.Cluster)
}

// ReadTerminate reads a request to give a cluster back, which it names: the element
// <terminate> in XML. Errors are those of ReadScale.
func ReadTerminate(data []byte, format Format) (wire.TerminateRequest, error) {
	r, places, problems := decodeAs[wire.TerminateRequest](data, format, kind{"terminate", "cluster"})
	return r, changeError(places, problems, r.Cluster)
}

// changeError is what is wrong with a request about a cluster.
func changeError(places Places, problems []muster.Problem, cluster string) error {
	if cluster == "" && len(problems) == 0 {
		problems = places.Merge(nil, []muster.Problem{{Field: "cluster", Reason: muster.ReasonRequired, Message: "it is missing", Hint: "write the ID or the name of the cluster, as the reply to its request has it"}})
	}
	if e := Error(inOrder(problems)); e != nil {
		return e
	}
	return nil
}
