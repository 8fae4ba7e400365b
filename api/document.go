package api

import (
	"bytes"
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/wire"
)

// documentInput is a request as a text in any of the three formats.
type documentInput struct {
	ContentType string `header:"Content-Type"`
	RawBody     []byte
}

// format is what the text is written in.
func (in *documentInput) format() (spec.Format, error) {
	format, err := formatOf(in.ContentType)
	if err != nil {
		return "", err
	}
	if format != "" {
		format = "application/" + format
	}
	return spec.FormatOf(format, "", in.RawBody), nil
}

// documentRoutes take requests about a cluster that they name themselves, in the formats
// in which clusters are asked for.
func (a *API) documentRoutes() {
	op := a.documentOperation("scale-by-document", "/v1/scale", "Change the size of the cluster that the request names", reflect.TypeFor[wire.ScaleRequest]())
	huma.Register(a.huma, op, func(ctx context.Context, in *documentInput) (*reply[wire.Scaled], error) {
		format, err := in.format()
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		r, err := spec.ReadScale(bytes.Clone(in.RawBody), format)
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		return a.scale(ctx, r.Cluster, r)
	})
	op = a.documentOperation("terminate-by-document", "/v1/terminate", "Give back the cluster that the request names", reflect.TypeFor[wire.TerminateRequest]())
	huma.Register(a.huma, op, func(ctx context.Context, in *documentInput) (*reply[wire.Deleted], error) {
		format, err := in.format()
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		r, err := spec.ReadTerminate(bytes.Clone(in.RawBody), format)
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		end := a.service.DeleteCluster
		if r.Erase {
			end = a.service.EraseCluster
		}
		out, err := end(ctx, who(ctx), r.Cluster)
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		return &reply[wire.Deleted]{out}, nil
	})
}

func (a *API) documentOperation(id, path, summary string, body reflect.Type) huma.Operation {
	schema := a.huma.OpenAPI().Components.Schemas.Schema(body, true, "Request")
	op := huma.Operation{
		OperationID: id, Method: http.MethodPost, Path: path, Tags: []string{"clusters"}, Summary: summary,
		Description:   "The body is in JSON, YAML or XML with the same fields.",
		DefaultStatus: http.StatusAccepted, SkipValidateBody: true,
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {Schema: schema}, "application/yaml": {Schema: schema}, "application/xml": {Schema: schema},
		}},
	}
	a.prepare(&op)
	return op
}
