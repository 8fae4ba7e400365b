package admit

import "github.com/muster-hpc/muster"

// Answer tells whether and how the request can be served. The cluster ID seeds
// every tie-break: the same request on the same snapshot has the same answer.
// image may be nil when nothing is known of it. spec must be validated.
func Answer(id muster.ClusterID, spec muster.Spec, image *muster.Image, snap Snapshot, placer Placer) muster.Answer {
	return muster.Answer{}
}

// Refusal turns an answer that does not serve the request into the error to
// return: never, or no room while the request does not want to queue. It
// returns nil when the request may go ahead or wait.
func Refusal(spec muster.Spec, a muster.Answer) *muster.Error { return nil }
