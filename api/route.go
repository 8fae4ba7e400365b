package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster/wire"
)

// reply is a JSON body.
type reply[T any] struct{ Body T }

// none is the input of routes that take nothing.
type none struct{}

// route registers an operation whose handler speaks plain Go.
func route[I, O any](a *API, op huma.Operation, handle func(context.Context, *I) (O, error)) {
	a.prepare(&op)
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*reply[O], error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		return &reply[O]{out}, nil
	})
}

// prepare gives every operation the same error reply and limits.
func (a *API) prepare(op *huma.Operation) {
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	schema := a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[wire.Refused](), true, "Error")
	op.Responses["default"] = &huma.Response{
		Description: "An error; docs/users/errors.md lists the codes with their statuses",
		Content:     map[string]*huma.MediaType{"application/json": {Schema: schema}},
	}
	op.BodyReadTimeout = -1 // guard has read the body
	op.MaxBodyBytes = maxBody
	if op.Method == http.MethodGet {
		return
	}
	if op.Metadata == nil {
		op.Metadata = map[string]any{}
	}
}

func (a *API) routes() {
	a.clusterRoutes()
	a.changeRoutes()
	a.nodeRoutes()
	a.consoleRoutes()
	a.machineRoutes()
	a.planningRoutes()
	a.courseRoutes()
	a.machineCareRoutes()
	a.registrationRoutes()
	a.volumeRoutes()
	a.imageRoutes()
	a.userRoutes()
	a.siteRoutes()
	a.certificateRoutes()
	a.usageRoutes()
	a.benchRoutes()
	a.programRoutes()
	a.platformRoutes()
	a.topologyRoutes()
	a.experimentRoutes()
	a.logRoutes()
	a.eventRoutes()
	a.gatewayRoutes()
}
