package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// ChangeKey makes the server sign certificates with a new key.
func (k *Client) ChangeKey(ctx context.Context, r wire.ChangeKey) (wire.SigningKeys, error) {
	var out wire.SigningKeys
	return out, k.post(ctx, path("certificates", "key"), r, &out)
}

// SigningKeys lists the public keys by which the server's certificates are
// verified, the present one last.
func (k *Client) SigningKeys(ctx context.Context) (wire.SigningKeys, error) {
	list, err := pages(ctx, k, path("certificates", "keys"), nil, 0, func(l wire.SigningKeys) ([]muster.SigningKey, wire.More) { return l.Keys, l.More })
	return wire.SigningKeys{Keys: list}, err
}

// Certificates lists certificates that the caller may see, newest first.
func (k *Client) Certificates(ctx context.Context, q wire.CertificateQuery) ([]wire.CertificateRow, error) {
	query := url.Values{}
	for name, v := range map[string]string{"cluster": q.Cluster, "node": q.Node, "machine": string(q.Machine), "class": q.Class, "kind": string(q.Kind)} {
		if v != "" {
			query.Set(name, v)
		}
	}
	if q.Present {
		query.Set("present", "true")
	}
	if !q.Since.IsZero() {
		query.Set("since", time.Since(q.Since).Round(time.Second).String())
	}
	return pages(ctx, k, path("certificates"), query, q.Limit, func(l wire.CertificateList) ([]wire.CertificateRow, wire.More) { return l.Certificates, l.More })
}

// Certificate returns a certificate in its envelope, byte by byte as it was signed.
func (k *Client) Certificate(ctx context.Context, id muster.CertificateID) ([]byte, error) {
	resp, err := k.send(ctx, call{method: http.MethodGet, path: path("certificates", string(id))})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "the reply of %s broke off", k.address).Because(muster.ReasonBrokenOff).WithHint("try again").Wrap(err)
	}
	return body, nil
}

// Compare holds clusters, machines, classes or certificates against the first of
// them.
func (k *Client) Compare(ctx context.Context, q wire.CompareQuery) (wire.Comparison, error) {
	query := url.Values{"of": q.Of}
	if len(q.Across) > 0 {
		query.Set("across", strings.Join(q.Across, ","))
	}
	if q.Metric != "" {
		query.Set("metric", q.Metric)
	}
	var out wire.Comparison
	return out, k.get(ctx, path("certificates", "compare"), query, &out)
}

// History reports how figures of a cluster, a machine or a class went over time.
func (k *Client) History(ctx context.Context, q wire.HistoryQuery) (wire.History, error) {
	query := url.Values{"of": {q.Of}}
	if q.Metric != "" {
		query.Set("metric", q.Metric)
	}
	if q.Since > 0 {
		query.Set("since", q.Since.String())
	}
	var out wire.History
	return out, k.get(ctx, path("certificates", "history"), query, &out)
}

// Mixes is what one core reaches in mixes of arithmetic, by processor model.
func (k *Client) Mixes(ctx context.Context, q wire.MixQuery) (wire.MixTable, error) {
	query := url.Values{}
	if q.Class != "" {
		query.Set("class", q.Class)
	}
	var out wire.MixTable
	return out, k.get(ctx, path("certificates", "mixes"), query, &out)
}
