package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Images lists the images of the server.
func (k *Client) Images(ctx context.Context) ([]wire.Image, error) {
	return pages(ctx, k, path("images"), nil, 0, func(l wire.ImageList) ([]wire.Image, wire.More) { return l.Images, l.More })
}

// Image shows the whole manifest of an image, by name, ID or the beginning of
// an ID.
func (k *Client) Image(ctx context.Context, ref string) (muster.Image, error) {
	var out muster.Image
	return out, k.get(ctx, path("images", ref), nil, &out)
}

// ImageVersions lists the contents that an image has, the newest first, and why they stay.
func (k *Client) ImageVersions(ctx context.Context, ref string) (wire.ImageVersionList, error) {
	var out wire.ImageVersionList
	list, err := pages(ctx, k, path("images", ref, "versions"), nil, 0, func(l wire.ImageVersionList) ([]wire.ImageVersion, wire.More) {
		out = l
		return l.Versions, l.More
	})
	out.Versions, out.More = list, wire.More{}
	return out, err
}

// CompareImages says which packages differ between two images.
func (k *Client) CompareImages(ctx context.Context, ref, with string) (wire.ImageComparison, error) {
	var out wire.ImageComparison
	return out, k.get(ctx, path("images", ref, "compare"), url.Values{"with": {with}}, &out)
}

// PinImage keeps a content whatever the site's rule says.
func (k *Client) PinImage(ctx context.Context, ref string, r wire.PinImage) (wire.ImagePinned, error) {
	var out wire.ImagePinned
	return out, k.post(ctx, path("images", ref, "pin"), r, &out)
}

// UnpinImage leaves a content to the site's rule.
func (k *Client) UnpinImage(ctx context.Context, ref string) (wire.ImagePinned, error) {
	var out wire.ImagePinned
	return out, k.do(ctx, call{method: http.MethodDelete, path: path("images", ref, "pin"), out: &out})
}

// VerifyImage reads the files of an image and compares their digests. Returns
// ECorrupt when one differs.
func (k *Client) VerifyImage(ctx context.Context, ref string) (wire.ImageVerified, error) {
	var out wire.ImageVerified
	return out, k.do(ctx, call{method: http.MethodPost, path: path("images", ref, "verify"), out: &out})
}

// RemoveImage removes an image. Returns EConflict while it is in use.
func (k *Client) RemoveImage(ctx context.Context, ref string) error {
	return k.do(ctx, call{method: http.MethodDelete, path: path("images", ref)})
}
