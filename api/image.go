package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

type imageRef struct {
	Image string `path:"image" maxLength:"128" doc:"Name, ID, or the beginning of an ID"`
}

func (a *API) imageRoutes() {
	route(a, huma.Operation{
		OperationID: "list-images", Method: http.MethodGet, Path: "/v1/images", Tags: []string{"images"},
		Summary: "List the images",
	}, func(ctx context.Context, in *Page) (wire.ImageList, error) {
		return a.service.Images(ctx, who(ctx), in.page())
	})
	route(a, huma.Operation{
		OperationID: "show-image", Method: http.MethodGet, Path: "/v1/images/{image}", Tags: []string{"images"},
		Summary: "Show the manifest of an image",
	}, func(ctx context.Context, in *imageRef) (muster.Image, error) {
		return a.service.Image(ctx, who(ctx), in.Image)
	})
	route(a, huma.Operation{
		OperationID: "verify-image", Method: http.MethodPost, Path: "/v1/images/{image}/verify", Tags: []string{"images"},
		Summary: "Read the files of an image and compare their digests",
	}, func(ctx context.Context, in *imageRef) (wire.ImageVerified, error) {
		return a.service.VerifyImage(ctx, who(ctx), in.Image)
	})
	route(a, huma.Operation{
		OperationID: "remove-image", Method: http.MethodDelete, Path: "/v1/images/{image}", Tags: []string{"images"},
		Summary: "Remove an image that no cluster uses",
	}, func(ctx context.Context, in *imageRef) (wire.Done, error) {
		return wire.Done{Status: "removed"}, a.service.RemoveImage(ctx, who(ctx), in.Image)
	})
}
