package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Volumes are made, kept and erased. Those of clusters are made with them.
type Volumes interface {
	Volumes(ctx context.Context, who muster.Actor, q wire.VolumeQuery) (wire.VolumeList, error)
	Volume(ctx context.Context, who muster.Actor, ref string) (wire.Volume, error)
	CreateVolume(ctx context.Context, who muster.Actor, r wire.VolumeRequest) (wire.Volume, error)
	// DeleteVolume erases a volume that no cluster uses.
	DeleteVolume(ctx context.Context, who muster.Actor, ref string) (wire.Volume, error)
	// RetainVolume says how long what a cluster left is kept.
	RetainVolume(ctx context.Context, who muster.Actor, ref string, r wire.VolumeRetention) (wire.Volume, error)
	// EraseCluster gives a cluster back with its home.
	EraseCluster(ctx context.Context, who muster.Actor, ref string) (wire.Deleted, error)
}

// VolumeRef names a volume in a path.
type VolumeRef struct {
	Volume string `path:"volume" maxLength:"128" doc:"ID, or the name while that is unambiguous"`
}

type volumesInput struct {
	All     bool   `query:"all" doc:"Erased volumes too, and the states of schedulers"`
	Project string `query:"project" maxLength:"128"`
	Owner   string `query:"owner" maxLength:"128"`
	Page
}

type volumeInput struct{ Body wire.VolumeRequest }

type retainInput struct {
	VolumeRef
	Body wire.VolumeRetention
}

func (a *API) volumeRoutes() {
	volumes := []string{"volumes"}
	route(a, huma.Operation{
		OperationID: "list-volumes", Method: http.MethodGet, Path: "/v1/volumes", Tags: volumes,
		Summary: "List the volumes that the caller may see",
	}, func(ctx context.Context, in *volumesInput) (wire.VolumeList, error) {
		return a.service.Volumes(ctx, who(ctx), wire.VolumeQuery{All: in.All, Project: in.Project, Owner: in.Owner, Page: in.page()})
	})
	route(a, huma.Operation{
		OperationID: "show-volume", Method: http.MethodGet, Path: "/v1/volumes/{volume}", Tags: volumes,
		Summary: "Show a volume with the clusters that mount it",
	}, func(ctx context.Context, in *VolumeRef) (wire.Volume, error) {
		return a.service.Volume(ctx, who(ctx), in.Volume)
	})
	route(a, huma.Operation{
		OperationID: "create-volume", Method: http.MethodPost, Path: "/v1/volumes", Tags: volumes,
		Summary:       "Make a volume for a project's data",
		DefaultStatus: http.StatusCreated,
	}, func(ctx context.Context, in *volumeInput) (wire.Volume, error) {
		return a.service.CreateVolume(ctx, who(ctx), in.Body)
	})
	route(a, huma.Operation{
		OperationID: "delete-volume", Method: http.MethodDelete, Path: "/v1/volumes/{volume}", Tags: volumes,
		Summary:       "Erase a volume that no cluster uses",
		Description:   "Begins the erasure and answers at once. Deleting again is not an error.",
		DefaultStatus: http.StatusAccepted,
	}, func(ctx context.Context, in *VolumeRef) (wire.Volume, error) {
		return a.service.DeleteVolume(ctx, who(ctx), in.Volume)
	})
	route(a, huma.Operation{
		OperationID: "retain-volume", Method: http.MethodPost, Path: "/v1/volumes/{volume}/retain", Tags: volumes,
		Summary: "Say how long what a deleted cluster left is kept",
	}, func(ctx context.Context, in *retainInput) (wire.Volume, error) {
		return a.service.RetainVolume(ctx, who(ctx), in.Volume, in.Body)
	})
}
