package api

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/replyjson"
)

// Config is what an API needs.
type Config struct {
	Service Service
	Auth    Authenticator
	Log     *slog.Logger
	Version string
	// UID is the user who, besides user 0, is the administrator over the Unix
	// socket. Zero: the user of this process.
	UID int
	// Heartbeat is how often a silent event stream shows that it lives. Zero:
	// 15 s.
	Heartbeat time.Duration
	// BodyTime is how long a client may take to send a request. Zero: 10 s.
	BodyTime time.Duration
	// Limits bound the requests under way.
	Limits Limits
}

// API serves the routes.
type API struct {
	service   Service
	auth      Authenticator
	log       *slog.Logger
	uid       uint32
	heartbeat time.Duration
	bodyTime  time.Duration
	huma      huma.API
	handler   http.Handler
	closing   chan struct{}
	meter     *meter
	inflight  *inflight
	close     sync.Once
}

// New registers all routes.
func New(c Config) *API {
	a := &API{service: c.Service, auth: c.Auth, log: c.Log, uid: uint32(c.UID), heartbeat: c.Heartbeat, closing: make(chan struct{}), meter: newMeter(), inflight: newInflight(c.Limits)}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if c.UID == 0 {
		a.uid = uint32(os.Geteuid())
	}
	if a.bodyTime = c.BodyTime; a.bodyTime <= 0 {
		a.bodyTime = 10 * time.Second
	}
	if a.heartbeat <= 0 {
		a.heartbeat = 15 * time.Second
	}
	mux := http.NewServeMux()
	a.huma = humago.New(mux, config(c.Version))
	a.routes()
	neverNull(a.huma.OpenAPI())
	// The framework's own form of error is turned into ours before it leaves.
	schemas := a.huma.OpenAPI().Components.Schemas.Map()
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.write(w, r, muster.Errorf(muster.ENotFound, "no such route: %s %.200s", r.Method, r.URL.Path).Because(muster.ReasonNoSuchRoute).
			WithHint("all routes are in /v1/openapi.json"))
	})
	mux.HandleFunc("GET /metrics", a.metrics)
	a.handler = a.meter.watch(a.guard(mux))
	return a
}

// Handler serves the API; requests must come through a server that has
// ConnContext, or they are nobody's.
func (a *API) Handler() http.Handler { return a.handler }

// OpenAPI is the description of the API as JSON.
func (a *API) OpenAPI() ([]byte, error) { return a.huma.OpenAPI().MarshalJSON() }

// Close ends all event streams, so that a server can shut down. It may be
// called more than once, and by several at once.
func (a *API) Close() { a.close.Do(func() { close(a.closing) }) }

// HTTPServer is a server with the limits that the API wants: a client that
// sends or reads too slowly is cut off.
func (a *API) HTTPServer() *http.Server {
	s := &http.Server{
		Handler:           a.handler,
		ConnContext:       ConnContext,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: streamsOfConnection},
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	s.RegisterOnShutdown(a.Close)
	return s
}

func config(version string) huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	registry.RegisterTypeAlias(reflect.TypeFor[muster.Duration](), reflect.TypeFor[float64]())
	format := huma.Format{Marshal: replyjson.Write, Unmarshal: json.Unmarshal}
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title:       "Muster",
				Version:     version,
				Description: "Dedicated HPC clusters on demand. Errors have the schema Error; fields are only ever added.",
				License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
			},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token": {Type: "http", Scheme: "bearer", Description: "A token of 'muster token create'. Over the Unix socket the administrator needs none."},
				},
			},
			Security: []map[string][]string{{"token": {}}},
		},
		OpenAPIPath:                  "/v1/openapi",
		Formats:                      map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{oneForm},
	}
}

// schemaName keeps the records of the dictionary apart from what the API shows
// of them where both have the same name.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	base := t
	for base.Kind() == reflect.Pointer || base.Kind() == reflect.Slice {
		base = base.Elem()
	}
	if base.PkgPath() == reflect.TypeFor[muster.Error]().PkgPath() {
		switch name {
		case "Image", "Cluster", "Node", "Machine":
			return name + "Record"
		}
	}
	return name
}
