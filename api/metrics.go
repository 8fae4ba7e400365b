package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// meter counts the requests of this API, and shows everything that a caller
// may see to a monitoring system.
type meter struct {
	requests *prometheus.CounterVec
	took     prometheus.Histogram
	process  []prometheus.Collector
}

func newMeter() *meter {
	return &meter{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_api_requests_total", Help: "Requests answered, by method and status."}, []string{"method", "status"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "muster_api_request_seconds", Help: "Time to answer; streams and tunnels do not count.",
			Buckets: []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10}}),
		process: []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})},
	}
}

// watch counts what next answers.
func (m *meter) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		s := &statusWriter{ResponseWriter: w, streamed: r.Header.Get("Upgrade") != ""}
		defer func() {
			status := s.status
			if status == 0 {
				status = http.StatusOK
			}
			method := r.Method
			switch method {
			case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodHead:
			default:
				method = "other" // a client may invent any
			}
			m.requests.WithLabelValues(method, strconv.Itoa(status)).Inc()
			if !s.streamed {
				m.took.Observe(time.Since(began).Seconds())
			}
		}()
		next.ServeHTTP(s, r)
	})
}

// statusWriter remembers the status of a reply.
type statusWriter struct {
	http.ResponseWriter
	status   int
	streamed bool
}

func (s *statusWriter) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

// own is the writer of net/http itself, which closes a connection whose request
// is too large.
func own(w http.ResponseWriter) http.ResponseWriter {
	if s, ok := w.(*statusWriter); ok {
		return s.ResponseWriter
	}
	return w
}

// Unwrap lets a response controller reach what is below; whoever needs one
// streams or takes the connection over.
func (s *statusWriter) Unwrap() http.ResponseWriter {
	s.streamed = s.streamed || s.status != 0
	return s.ResponseWriter
}

// metrics answers GET /metrics. The route is not part of the described API:
// its form is that of monitoring systems.
func (a *API) metrics(w http.ResponseWriter, r *http.Request) {
	actor := who(r.Context())
	list, err := a.service.Metrics(r.Context(), actor)
	if err != nil {
		a.write(w, r, err)
		return
	}
	reg := prometheus.NewRegistry()
	var all []prometheus.Collector
	all = append(all, families(list))
	if actor.Admin {
		all = append(all, a.meter.requests, a.meter.took)
		all = append(all, a.meter.process...)
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			a.write(w, r, muster.Errorf(muster.EInternal, "metrics are not available").Wrap(err))
			return
		}
	}
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{DisableCompression: len(list) == 0}).ServeHTTP(w, r)
}

// families are figures that were collected already.
type families []wire.Metric

// Describe tells nothing: what there is depends on the caller.
func (families) Describe(chan<- *prometheus.Desc) {}

// Collect hands the figures over.
func (f families) Collect(out chan<- prometheus.Metric) {
	for _, m := range f {
		kind := prometheus.GaugeValue
		if m.Counter {
			kind = prometheus.CounterValue
		}
		desc := prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
		for _, v := range m.Values {
			one, err := prometheus.NewConstMetric(desc, kind, v.Value, v.Labels...)
			if err != nil {
				one = prometheus.NewInvalidMetric(desc, err)
			}
			out <- one
		}
	}
}

// Metrics is what the API needs for GET /metrics.
type Metrics interface {
	Metrics(ctx context.Context, who muster.Actor) ([]wire.Metric, error)
}
