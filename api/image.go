package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// ImageRef names an image. It is exported because the framework skips other embedded fields.
type ImageRef struct {
	Image string `path:"image" maxLength:"128" doc:"Name, ID, or the beginning of an ID; or one content of it: hpc@2026-11-20, hpc@2026-11, hpc@0ddd19d63a2e"`
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
	}, func(ctx context.Context, in *ImageRef) (muster.Image, error) {
		return a.service.Image(ctx, who(ctx), in.Image)
	})
	route(a, huma.Operation{
		OperationID: "verify-image", Method: http.MethodPost, Path: "/v1/images/{image}/verify", Tags: []string{"images"},
		Summary: "Read the files of an image and compare their digests",
	}, func(ctx context.Context, in *ImageRef) (wire.ImageVerified, error) {
		return a.service.VerifyImage(ctx, who(ctx), in.Image)
	})
	route(a, huma.Operation{
		OperationID: "remove-image", Method: http.MethodDelete, Path: "/v1/images/{image}", Tags: []string{"images"},
		Summary: "Remove an image that no cluster uses",
	}, func(ctx context.Context, in *ImageRef) (wire.Done, error) {
		return wire.Done{Status: "removed"}, a.service.RemoveImage(ctx, who(ctx), in.Image)
	})
	route(a, huma.Operation{
		OperationID: "image-versions", Method: http.MethodGet, Path: "/v1/images/{image}/versions", Tags: []string{"images"},
		Summary: "List the contents that an image has, the newest first, and why they are kept",
	}, func(ctx context.Context, in *struct {
		ImageRef
		Page
	}) (wire.ImageVersionList, error) {
		return a.service.ImageVersions(ctx, who(ctx), in.Image, in.page())
	})
	route(a, huma.Operation{
		OperationID: "compare-images", Method: http.MethodGet, Path: "/v1/images/{image}/compare", Tags: []string{"images"},
		Summary: "Say which packages differ between two images",
	}, func(ctx context.Context, in *struct {
		ImageRef
		With string `query:"with" required:"true" maxLength:"128" doc:"The other image, named likewise"`
	}) (wire.ImageComparison, error) {
		return a.service.CompareImages(ctx, who(ctx), in.Image, in.With)
	})
	route(a, huma.Operation{
		OperationID: "pin-image", Method: http.MethodPost, Path: "/v1/images/{image}/pin", Tags: []string{"images"},
		Summary: "Keep a content of an image whatever the site's rule says",
	}, func(ctx context.Context, in *struct {
		ImageRef
		Body wire.PinImage
	}) (wire.ImagePinned, error) {
		return a.service.PinImage(ctx, who(ctx), in.Image, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "unpin-image", Method: http.MethodDelete, Path: "/v1/images/{image}/pin", Tags: []string{"images"},
		Summary: "Leave a content of an image to the site's rule",
	}, func(ctx context.Context, in *ImageRef) (wire.ImagePinned, error) {
		return a.service.UnpinImage(ctx, who(ctx), in.Image)
	})
}
