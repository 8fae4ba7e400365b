package client

import (
	"context"
	"net/http"

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
