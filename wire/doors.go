package wire

import "github.com/muster-hpc/muster"

// DoorsRequest says which doors of the SSH gateway are open for a cluster.
type DoorsRequest struct {
	Doors []string `json:"doors" maxItems:"10" doc:"straight, jump, plain; or none. Empty: all that the site and the project leave open"`
}

// DoorsReply says which doors are open now.
type DoorsReply struct {
	ID   muster.ClusterID `json:"id"`
	Name string           `json:"name"`
	Open []muster.Door    `json:"open"`
}
