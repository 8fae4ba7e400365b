package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Certificates are what was measured and signed, and what follows from several of
// them together.
type Certificates interface {
	Certificates(ctx context.Context, who muster.Actor, q wire.CertificateQuery) (wire.CertificateList, error)
	// Certificate is the envelope, byte by byte as it was signed.
	Certificate(ctx context.Context, who muster.Actor, id muster.CertificateID) ([]byte, error)
	Compare(ctx context.Context, who muster.Actor, q wire.CompareQuery) (wire.Comparison, error)
	History(ctx context.Context, who muster.Actor, q wire.HistoryQuery) (wire.History, error)
	Mixes(ctx context.Context, who muster.Actor, q wire.MixQuery) (wire.MixTable, error)
}

// CertificateFilter narrows a list of certificates.
type CertificateFilter struct {
	Node    string `query:"node" maxLength:"128" doc:"Only of this node"`
	Machine string `query:"machine" maxLength:"128" doc:"Only of this machine"`
	Class   string `query:"class" maxLength:"128" doc:"Only of machines of this class, and clusters of them"`
	Kind    string `query:"kind" enum:"node,cluster" doc:"Only of nodes, or of whole clusters"`
	Present bool   `query:"present" doc:"Without those that others took the place of"`
	Since   string `query:"since" maxLength:"32" doc:"How far back: 6h, 14d or 400d"`
	Page
}

func (f CertificateFilter) query() (wire.CertificateQuery, error) {
	q := wire.CertificateQuery{Node: f.Node, Machine: muster.MachineID(f.Machine), Class: f.Class, Kind: muster.CertificateKind(f.Kind), Present: f.Present, Page: f.page()}
	ago, err := Span{Since: f.Since}.query()
	if err == nil && ago.Since > 0 {
		q.Since = time.Now().Add(-ago.Since)
	}
	return q, err
}

type allCertificates struct {
	Cluster string `query:"cluster" maxLength:"128" doc:"Only of this cluster, by name or ID"`
	CertificateFilter
}

type clusterCertificates struct {
	ClusterRef
	CertificateFilter
}

type certificateRef struct {
	Certificate string `path:"certificate" maxLength:"32" doc:"pc- and ten characters"`
}

// envelope is a reply whose bytes are signed.
type envelope struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

type compareInput struct {
	Of     []string `query:"of,explode" maxItems:"16" doc:"Two or more clusters, machines, classes or certificates; the first is what the others are compared with"`
	Across string   `query:"across" maxLength:"256" doc:"Conditions whose difference is what is compared, with commas between them: processor,cores"`
	Metric string   `query:"metric" maxLength:"64" doc:"Only this metric, or those whose names begin so before a dot"`
}

type historyInput struct {
	Of     string `query:"of" required:"true" maxLength:"128" doc:"A cluster, a machine or a class; cluster:NAME, machine:ID or class:NAME where one name is several"`
	Metric string `query:"metric" maxLength:"64" doc:"Only this metric, or those whose names begin so before a dot"`
	Since  string `query:"since" maxLength:"32" doc:"How far back: 14d or 400d; everything without it"`
}

type mixesInput struct {
	Class string `query:"class" maxLength:"128" doc:"Only of machines of this class"`
}

func (a *API) certificateRoutes() {
	tags := []string{"certificates"}
	route(a, huma.Operation{
		OperationID: "certificate-keys", Method: http.MethodGet, Path: "/v1/certificates/keys", Tags: tags,
		Summary:  "List the public keys by which certificates are verified; needs no token",
		Security: []map[string][]string{},
	}, func(ctx context.Context, in *Page) (wire.SigningKeys, error) {
		out := a.service.SigningKeys(ctx)
		out.Keys, out.More = wire.Cut(out.Keys, in.page(), func(k muster.SigningKey) string { return k.From.UTC().Format("2006-01-02T15:04:05.000000000") + k.ID })
		out.Keys = some(out.Keys)
		return out, nil
	})
	route(a, huma.Operation{
		OperationID: "change-certificate-key", Method: http.MethodPost, Path: "/v1/certificates/key", Tags: tags,
		Summary:     "Sign certificates with a new key from now on",
		Description: "What the present key signed stays valid, unless it is said to be stolen. Only administrators may.",
	}, func(ctx context.Context, in *changeKeyInput) (wire.SigningKeys, error) {
		return a.service.ChangeKey(ctx, who(ctx), in.Body)
	})
	list := func(ctx context.Context, cluster string, f CertificateFilter) (wire.CertificateList, error) {
		q, err := f.query()
		if err != nil {
			return wire.CertificateList{}, err
		}
		q.Cluster = cluster
		return a.service.Certificates(ctx, who(ctx), q)
	}
	route(a, huma.Operation{
		OperationID: "list-certificates", Method: http.MethodGet, Path: "/v1/certificates", Tags: tags,
		Summary:     "List the certificates that the caller may see",
		Description: "Newest first. Those of deleted clusters are there until two years after they expired.",
	}, func(ctx context.Context, in *allCertificates) (wire.CertificateList, error) {
		return list(ctx, in.Cluster, in.CertificateFilter)
	})
	route(a, huma.Operation{
		OperationID: "cluster-certificates", Method: http.MethodGet, Path: "/v1/clusters/{cluster}/certificates", Tags: tags,
		Summary: "List the certificates of a cluster and its nodes",
	}, func(ctx context.Context, in *clusterCertificates) (wire.CertificateList, error) {
		return list(ctx, in.Cluster, in.CertificateFilter)
	})
	route(a, huma.Operation{
		OperationID: "compare", Method: http.MethodGet, Path: "/v1/certificates/compare", Tags: tags,
		Summary:     "Compare what was measured of clusters, machines or classes",
		Description: "By the newest certificate of each that the caller may see. Only like is compared with like.",
	}, func(ctx context.Context, in *compareInput) (wire.Comparison, error) {
		q := wire.CompareQuery{Of: in.Of, Metric: in.Metric}
		if in.Across != "" {
			q.Across = strings.Split(in.Across, ",")
		}
		return a.service.Compare(ctx, who(ctx), q)
	})
	route(a, huma.Operation{
		OperationID: "history", Method: http.MethodGet, Path: "/v1/certificates/history", Tags: tags,
		Summary:     "Read how what was measured of a cluster, a machine or a class went over time",
		Description: "By the certificates that the caller may see. Of a class: figures, not whose they were.",
	}, func(ctx context.Context, in *historyInput) (wire.History, error) {
		ago, err := Span{Since: in.Since}.query()
		if err != nil {
			return wire.History{}, err
		}
		return a.service.History(ctx, who(ctx), wire.HistoryQuery{Of: in.Of, Metric: in.Metric, Since: ago.Since})
	})
	route(a, huma.Operation{
		OperationID: "mixes", Method: http.MethodGet, Path: "/v1/certificates/mixes", Tags: tags,
		Summary:     "Read what one core reaches in mixes of arithmetic, by processor model, beside the theoretical peak",
		Description: "By the newest full certificates that the caller may see, of up to eight machines of each class.",
	}, func(ctx context.Context, in *mixesInput) (wire.MixTable, error) {
		return a.service.Mixes(ctx, who(ctx), wire.MixQuery{Class: in.Class})
	})
	a.envelopeRoute(huma.Operation{
		OperationID: "show-certificate", Method: http.MethodGet, Path: "/v1/certificates/{certificate}", Tags: tags,
		Summary:     "Export a certificate in its envelope",
		Description: "Byte by byte as it was signed: docs/users/certificate.schema.json describes it, and docs/users/certificate.md how to verify it.",
	})
}

// envelopeRoute answers with bytes that nothing may write anew.
func (a *API) envelopeRoute(op huma.Operation) {
	a.prepare(&op)
	op.Responses["200"] = &huma.Response{
		Description: "An envelope: an object with the members certificate, key and signature",
		Content:     map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject}}},
	}
	huma.Register(a.huma, op, func(ctx context.Context, in *certificateRef) (*envelope, error) {
		body, err := a.service.Certificate(ctx, who(ctx), muster.CertificateID(in.Certificate))
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		return &envelope{"application/json", body}, nil
	})
}

type changeKeyInput struct{ Body wire.ChangeKey }
