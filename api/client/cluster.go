package client

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Create is a request for a cluster as its author wrote it.
type Create struct {
	Body   []byte
	Format string // json, yaml, xml; "" lets the server look
	DryRun bool
	// Key makes a repeated request find the first one's cluster instead of
	// making a second. Empty: one is made up, and the request is repeated when
	// the connection breaks.
	Key string
	// DefaultUser is who may log in when an administrator's request names
	// nobody.
	DefaultUser string
	// LiftLimits asks that limits of the project do not hold for it, for this Reason.
	LiftLimits bool
	Reason     string
}

// CreateCluster asks for a cluster. When no machine can ever serve the request
// the error is a *RefusedError with code ENever; when some may later, and the
// request does not queue, ENoCapacity.
func (k *Client) CreateCluster(ctx context.Context, c Create) (wire.Created, error) {
	var out wire.Created
	key := c.Key
	if key == "" {
		key = muster.RandomID(24)
	}
	query := url.Values{}
	if c.DryRun {
		query.Set("dry_run", "1")
	}
	if c.DefaultUser != "" {
		query.Set("default_user", c.DefaultUser)
	}
	if c.LiftLimits {
		query.Set("lift_limits", "1")
		query.Set("reason", c.Reason)
	}
	header := http.Header{"Content-Type": {mediaType(c.Format)}, "Idempotency-Key": {key}}
	req := call{method: http.MethodPost, path: path("clusters"), query: query, header: header, body: c.Body, out: &out}
	err := k.do(ctx, req)
	// The reply was lost: the key makes it safe to ask again, until a server
	// that restarts is back.
	for wait := 50 * time.Millisecond; isBroken(err) && (wait > 50*time.Millisecond || !isAbsent(err)) && wait < 5*time.Second; wait *= 2 {
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(wait):
		}
		err = k.do(ctx, req)
	}
	var refused *RefusedError
	if errors.As(err, &refused) {
		out.Status, out.Answer = "never", *refused.Answer
	}
	return out, err
}

// isAbsent reports whether there was no server to begin with.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// isBroken reports whether a reply was lost on its way.
func isBroken(err error) bool {
	var e *muster.Error
	return errors.As(err, &e) && e.Code == muster.EUnavailable && e.Err != nil
}

func mediaType(format string) string {
	switch format {
	case "json":
		return "application/json"
	case "yaml":
		return "application/yaml"
	case "xml":
		return "application/xml"
	}
	return "application/octet-stream"
}

// ClusterFilter narrows a listing. The zero value lists living clusters.
type ClusterFilter struct {
	All     bool // deleted ones too
	Project string
	Owner   string
}

// Clusters lists the clusters that the caller may see, without their nodes.
func (k *Client) Clusters(ctx context.Context, f ClusterFilter) ([]wire.Cluster, error) {
	return pages(ctx, k, path("clusters"), ownedBy(f.Project, f.Owner, f.All), 0, func(l wire.ClusterList) ([]wire.Cluster, wire.More) { return l.Clusters, l.More })
}

// ownedBy narrows a list; gone lists what is deleted, too.
func ownedBy(project, owner string, gone bool) url.Values {
	query := url.Values{}
	if gone {
		query.Set("all", "1")
	}
	if project != "" {
		query.Set("project", project)
	}
	if owner != "" {
		query.Set("owner", owner)
	}
	return query
}

// Cluster shows one cluster, by ID or name, with its nodes. Returns ENotFound
// when there is none that the caller may see.
func (k *Client) Cluster(ctx context.Context, ref string) (wire.Cluster, error) {
	var out wire.Cluster
	return out, k.get(ctx, path("clusters", ref), nil, &out)
}

// DeleteCluster begins the deletion of a cluster; Wait for PhaseDeleted to see
// its end. Deleting twice is no error.
func (k *Client) DeleteCluster(ctx context.Context, ref string) (wire.Deleted, error) {
	var out wire.Deleted
	return out, k.do(ctx, call{method: http.MethodDelete, path: path("clusters", ref), out: &out})
}

// Access asks for a certificate to log in to a node.
func (k *Client) Access(ctx context.Context, ref string, r wire.AccessRequest) (wire.Access, error) {
	var out wire.Access
	return out, k.post(ctx, path("clusters", ref, "access"), r, &out)
}

// Usage returns what a cluster's nodes use; samples is how many of the newest
// samples of each node, 0 for the last one only.
func (k *Client) Usage(ctx context.Context, ref string, samples int) (wire.ClusterUsage, error) {
	query := url.Values{}
	if samples > 0 {
		query.Set("samples", strconv.Itoa(samples))
	}
	var out wire.ClusterUsage
	return out, k.get(ctx, path("clusters", ref, "usage"), query, &out)
}
