package api

import (
	"context"
	"net"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Service is everything that the API can do. Every method acts on behalf of an
// actor, and returns ENotFound for what is absent and for what the actor may
// not see.
type Service interface {
	Clusters
	Changes
	Nodes
	Machines
	MachineCare
	Planning
	Courses
	Registrations
	Volumes
	Images
	People
	Site
	Seeing
	Certificates
	Benches
	Programs
	Platforms
	Topologies
	Experiments
	Journals
	Metrics
	Consoles
	Gateways
}

// Clusters are asked for, seen and given back.
type Clusters interface {
	// CreateCluster returns a *muster.Error with code ENever or ENoCapacity,
	// and the answer in the reply, when the request cannot be served.
	CreateCluster(ctx context.Context, who muster.Actor, call wire.CreateCall) (wire.Created, error)
	Clusters(ctx context.Context, who muster.Actor, q wire.ClusterQuery) (wire.ClusterList, error)
	Cluster(ctx context.Context, who muster.Actor, ref string) (wire.Cluster, error)
	DeleteCluster(ctx context.Context, who muster.Actor, ref string) (wire.Deleted, error)
}

// Nodes are reached and looked into.
type Nodes interface {
	Access(ctx context.Context, who muster.Actor, ref string, r wire.AccessRequest) (wire.Access, error)
	// MayUse is the cluster, when the actor may see it now, and have a root shell on its
	// nodes where that is asked. Returns ENotFound or EForbidden.
	MayUse(ctx context.Context, who muster.Actor, ref string, shell bool) (muster.ClusterID, error)
	// Tunnel connects to the SSH port of a node.
	Tunnel(ctx context.Context, who muster.Actor, ref, node string) (net.Conn, error)
	Usage(ctx context.Context, who muster.Actor, ref string, samples int) (wire.ClusterUsage, error)
}

// Machines are listed. Without all, only those that answer.
type Machines interface {
	Machines(ctx context.Context, who muster.Actor, q wire.MachineQuery) (wire.MachineList, error)
	Machine(ctx context.Context, who muster.Actor, id muster.MachineID) (wire.Machine, error)
	Topology(ctx context.Context, who muster.Actor, id muster.MachineID) (wire.MachineTopology, error)
	MachinePlan(ctx context.Context, who muster.Actor, id muster.MachineID, o muster.VMOptions) (wire.MachinePlan, error)
}

// Images are listed, compared, verified, pinned and removed.
type Images interface {
	Images(ctx context.Context, who muster.Actor, p wire.Page) (wire.ImageList, error)
	Image(ctx context.Context, who muster.Actor, ref string) (muster.Image, error)
	ImageVersions(ctx context.Context, who muster.Actor, ref string, p wire.Page) (wire.ImageVersionList, error)
	CompareImages(ctx context.Context, who muster.Actor, ref, with string) (wire.ImageComparison, error)
	PinImage(ctx context.Context, who muster.Actor, ref string, r wire.PinImage) (wire.ImagePinned, error)
	UnpinImage(ctx context.Context, who muster.Actor, ref string) (wire.ImagePinned, error)
	VerifyImage(ctx context.Context, who muster.Actor, ref string) (wire.ImageVerified, error)
	RemoveImage(ctx context.Context, who muster.Actor, ref string) error
}

// People are users with their keys and tokens.
type People interface {
	Users(ctx context.Context, who muster.Actor, p wire.Page) (wire.UserList, error)
	User(ctx context.Context, who muster.Actor, name string) (muster.User, error)
	PutUser(ctx context.Context, who muster.Actor, r wire.UserRequest) (muster.User, error)
	RemoveUser(ctx context.Context, who muster.Actor, name string) error
	Keys(ctx context.Context, who muster.Actor, user string, p wire.Page) (wire.KeyList, error)
	AddKey(ctx context.Context, who muster.Actor, user string, r wire.KeyRequest) (wire.KeysChanged, error)
	RemoveKey(ctx context.Context, who muster.Actor, user, key string) (wire.KeysChanged, error)
	Tokens(ctx context.Context, who muster.Actor, q wire.TokenQuery) (wire.TokenList, error)
	CreateToken(ctx context.Context, who muster.Actor, r wire.TokenRequest) (wire.Token, error)
	RevokeToken(ctx context.Context, who muster.Actor, id string) error
}

// Site is what concerns the whole server.
type Site interface {
	Server(ctx context.Context, who muster.Actor) (wire.Server, error)
	Health(ctx context.Context) wire.Health
	SigningKeys(ctx context.Context) wire.SigningKeys
	ChangeKey(ctx context.Context, who muster.Actor, r wire.ChangeKey) (wire.SigningKeys, error)
	// Events checks the query and returns the stream: a function that calls
	// send for each event until the context ends, send fails, or the past is
	// told and q.Follow is not set (then it returns nil).
	Events(ctx context.Context, who muster.Actor, q wire.EventQuery) (func(send func(wire.Event) error) error, error)
}

// Authenticator knows tokens by their hash.
type Authenticator interface {
	// Authenticate returns EUnauth for an unknown or expired token.
	Authenticate(ctx context.Context, hash [32]byte) (muster.Actor, error)
}
