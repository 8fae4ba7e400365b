package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Platforms are clusters that are not Muster's, and what a script found there.
type Platforms interface {
	ImportPlatform(ctx context.Context, who muster.Actor, r wire.PlatformImport) (wire.Platform, error)
	Platforms(ctx context.Context, who muster.Actor, page wire.Page) (wire.PlatformList, error)
	Platform(ctx context.Context, who muster.Actor, ref string) (wire.Platform, error)
	RemovePlatform(ctx context.Context, who muster.Actor, ref string) error
	ComparePlatforms(ctx context.Context, who muster.Actor, sides []string) (wire.PlatformComparison, error)
}

type platformInput struct{ Body wire.PlatformImport }

// PlatformRef names a platform in a path.
type PlatformRef struct {
	Project string `path:"project" maxLength:"64"`
	Name    string `path:"name" maxLength:"64"`
}

type sidesInput struct {
	Of []string `query:"of,explode" maxItems:"64" doc:"Name of a platform or of a cluster; platform:NAME and cluster:NAME say which. From 2 to 8"`
}

func (a *API) platformRoutes() {
	platforms := []string{"platforms"}
	route(a, huma.Operation{
		OperationID: "list-platforms", Method: http.MethodGet, Path: "/v1/platforms", Tags: platforms,
		Summary: "List clusters that are not Muster's, of the caller's projects",
	}, func(ctx context.Context, in *pageInput) (wire.PlatformList, error) {
		return a.service.Platforms(ctx, who(ctx), in.page())
	})
	route(a, huma.Operation{
		OperationID: "import-platform", Method: http.MethodPost, Path: "/v1/platforms", Tags: platforms,
		Summary: "Load what the script for clusters that are not Muster's wrote",
	}, func(ctx context.Context, in *platformInput) (wire.Platform, error) {
		return a.service.ImportPlatform(ctx, who(ctx), in.Body)
	})
	route(a, huma.Operation{
		OperationID: "compare-platforms", Method: http.MethodGet, Path: "/v1/platforms/comparison", Tags: platforms,
		Summary: "Put platforms and clusters side by side, by their built-in programs",
	}, func(ctx context.Context, in *sidesInput) (wire.PlatformComparison, error) {
		return a.service.ComparePlatforms(ctx, who(ctx), in.Of)
	})
	route(a, huma.Operation{
		OperationID: "show-platform", Method: http.MethodGet, Path: "/v1/platforms/{project}/{name}", Tags: platforms, Summary: "Show a platform with all its launches",
	}, func(ctx context.Context, in *PlatformRef) (wire.Platform, error) {
		return a.service.Platform(ctx, who(ctx), in.Project+"/"+in.Name)
	})
	route(a, huma.Operation{
		OperationID: "remove-platform", Method: http.MethodDelete, Path: "/v1/platforms/{project}/{name}", Tags: platforms, Summary: "Remove a platform",
	}, func(ctx context.Context, in *PlatformRef) (wire.Done, error) {
		return wire.Done{Status: "removed"}, a.service.RemovePlatform(ctx, who(ctx), in.Project+"/"+in.Name)
	})
}
