package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/muster-hpc/muster/wire"
)

// ImportPlatform loads what the script for clusters that are not Muster's wrote.
func (k *Client) ImportPlatform(ctx context.Context, r wire.PlatformImport) (wire.Platform, error) {
	var out wire.Platform
	return out, k.post(ctx, path("platforms"), r, &out)
}

// Platforms lists platforms.
func (k *Client) Platforms(ctx context.Context) (wire.PlatformList, error) {
	list, err := pages(ctx, k, path("platforms"), nil, 0, func(l wire.PlatformList) ([]wire.PlatformSummary, wire.More) { return l.Platforms, l.More })
	return wire.PlatformList{Platforms: list}, err
}

// Platform is one of a project.
func (k *Client) Platform(ctx context.Context, project, name string) (wire.Platform, error) {
	var out wire.Platform
	return out, k.get(ctx, path("platforms", project, name), nil, &out)
}

// RemovePlatform removes one of a project.
func (k *Client) RemovePlatform(ctx context.Context, project, name string) error {
	return k.do(ctx, call{method: http.MethodDelete, path: path("platforms", project, name), out: &struct{}{}})
}

// ComparePlatforms puts platforms and clusters side by side.
func (k *Client) ComparePlatforms(ctx context.Context, sides []string) (wire.PlatformComparison, error) {
	var out wire.PlatformComparison
	return out, k.get(ctx, path("platforms", "comparison"), url.Values{"of": sides}, &out)
}
