package api

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// ClusterRef names a cluster in a path.
type ClusterRef struct {
	Cluster string `path:"cluster" maxLength:"128" doc:"ID, or the name while that is unambiguous"`
}

type createInput struct {
	DryRun      bool   `query:"dry_run" doc:"Answer and plan only"`
	DefaultUser string `query:"default_user" maxLength:"64" doc:"Who may log in when an administrator's request names nobody"`
	Lift        bool   `query:"lift_limits" doc:"Limits of the project do not hold for it: for administrators, and for managers those of each user"`
	Why         string `query:"reason" maxLength:"300" doc:"Why limits are lifted, for everybody to see"`
	Key         string `header:"Idempotency-Key" maxLength:"128" doc:"The same key with the same request finds the cluster of the first one"`
	ContentType string `header:"Content-Type"`
	RawBody     []byte
}

type createOutput struct {
	Status int
	Body   wire.Created
}

type deleteInput struct {
	ClusterRef
	Erase bool `query:"erase" doc:"Erase its home too, instead of keeping it for a while"`
}

type listInput struct {
	All     bool   `query:"all" doc:"Deleted clusters too"`
	Project string `query:"project" maxLength:"128"`
	Owner   string `query:"owner" maxLength:"128"`
	Page
}

func (a *API) clusterRoutes() {
	a.createRoute()
	route(a, huma.Operation{
		OperationID: "list-clusters", Method: http.MethodGet, Path: "/v1/clusters", Tags: []string{"clusters"},
		Summary: "List the clusters that the caller may see",
	}, func(ctx context.Context, in *listInput) (wire.ClusterList, error) {
		return a.service.Clusters(ctx, who(ctx), wire.ClusterQuery{All: in.All, Project: in.Project, Owner: in.Owner, Page: in.page()})
	})
	route(a, huma.Operation{
		OperationID: "show-cluster", Method: http.MethodGet, Path: "/v1/clusters/{cluster}", Tags: []string{"clusters"},
		Summary: "Show a cluster with its nodes",
	}, func(ctx context.Context, in *ClusterRef) (wire.Cluster, error) {
		return a.service.Cluster(ctx, who(ctx), in.Cluster)
	})
	route(a, huma.Operation{
		OperationID: "delete-cluster", Method: http.MethodDelete, Path: "/v1/clusters/{cluster}", Tags: []string{"clusters"},
		Summary:       "Give a cluster back",
		Description:   "Begins the deletion and answers at once; the events tell when it is done. Deleting again is not an error.",
		DefaultStatus: http.StatusAccepted,
	}, func(ctx context.Context, in *deleteInput) (wire.Deleted, error) {
		if in.Erase {
			return a.service.EraseCluster(ctx, who(ctx), in.Cluster)
		}
		return a.service.DeleteCluster(ctx, who(ctx), in.Cluster)
	})
}

// createRoute takes the request as text in any of three formats: its one
// decoder and validator is package spec, not this framework.
func (a *API) createRoute() {
	registry := a.huma.OpenAPI().Components.Schemas
	request := registry.Schema(reflect.TypeFor[wire.Request](), true, "Request")
	op := huma.Operation{
		OperationID: "create-cluster", Method: http.MethodPost, Path: "/v1/clusters", Tags: []string{"clusters"},
		Summary: "Ask for a cluster",
		Description: "The body is a request in JSON, YAML or XML with the same fields. The reply has the cluster's ID and status: " +
			"building, queued, or dry-run. A request that no machine of the site can serve is refused with status 422 and code never.",
		DefaultStatus: http.StatusCreated,
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {Schema: request},
			"application/yaml": {Schema: request},
			"application/xml":  {Schema: request},
		}},
		SkipValidateBody: true,
	}
	a.prepare(&op)
	huma.Register(a.huma, op, func(ctx context.Context, in *createInput) (*createOutput, error) {
		format, err := formatOf(in.ContentType)
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		// The framework reuses its buffer.
		call := wire.CreateCall{Body: bytes.Clone(in.RawBody), Format: format, DryRun: in.DryRun, Key: in.Key, DefaultUser: in.DefaultUser, Lift: in.Lift, Why: in.Why}
		created, err := a.service.CreateCluster(ctx, who(ctx), call)
		if err != nil {
			public := a.public(ctx, err)
			refused := wire.Refused{Error: *public}
			if public.Code == muster.ENever || public.Code == muster.ENoCapacity {
				refused.Status, refused.Answer = string(public.Code), &created.Answer
			}
			return nil, &failure{Refused: refused, status: Status(public)}
		}
		status := http.StatusCreated
		if created.DryRun {
			status = http.StatusOK
		}
		return &createOutput{Status: status, Body: created}, nil
	})
}

// formatOf turns a content type into the name of a request format.
func formatOf(contentType string) (string, error) {
	if contentType == "" {
		return "", nil
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err == nil {
		switch media {
		case "application/json", "text/json":
			return "json", nil
		case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml":
			return "yaml", nil
		case "application/xml", "text/xml":
			return "xml", nil
		case "application/octet-stream", "text/plain", "application/x-www-form-urlencoded":
			return "", nil // what curl and others say when they were not told
		}
	}
	return "", muster.Errorf(muster.EInvalid, "a request is not read from %.100s", strings.TrimSpace(contentType)).Because(muster.ReasonUnknownFormat).
		WithHint("send application/json, application/yaml or application/xml")
}

// some makes an empty list of none, so that JSON has [] and not null.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
