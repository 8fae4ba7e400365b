package daemon_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/wire"
)

type yearKey struct{}

// ask calls the agents' endpoint, as an agent's request would.
func (s *yearServer) ask(ctx context.Context, id pki.NodeIdentity, from, method, path string, body, reply any) (int, error) {
	b, plain := body.(raw)
	if !plain {
		var err error
		if b, err = json.Marshal(body); err != nil {
			return 0, err
		}
	}
	if id.Machine != "" {
		ctx = context.WithValue(ctx, yearKey{}, id)
	}
	r := httptest.NewRequestWithContext(ctx, method, path, bytes.NewReader(b))
	r.RemoteAddr = from + ":1"
	w := httptest.NewRecorder()
	s.agents.ServeHTTP(w, r)
	var err error
	if w.Code == http.StatusOK && reply != nil {
		err = json.Unmarshal(w.Body.Bytes(), reply)
	}
	if err == nil && w.Code >= http.StatusBadRequest {
		var e muster.Error
		_ = json.Unmarshal(w.Body.Bytes(), &e)
		err = &e
	}
	return w.Code, err
}

// yearLink is an agent's way to whichever server is there.
type yearLink struct {
	y  *yearSite
	m  *fake.Machine
	id pki.NodeIdentity
}

func (l *yearLink) ask(ctx context.Context, method, path string, body, reply any) (int, error) {
	s := l.y.server()
	if s == nil || ctx.Err() != nil {
		return 0, muster.Errorf(muster.EUnavailable, "no server answers")
	}
	code, err := s.ask(ctx, l.id, l.m.Facts().Management.String(), method, path, body, reply)
	if code == 0 || ctx.Err() != nil {
		return 0, muster.Errorf(muster.EUnavailable, "no server answers")
	}
	return code, err
}

func (l *yearLink) Join(ctx context.Context, q wire.JoinRequest) (r wire.JoinReply, err error) {
	l.id = pki.NodeIdentity{}
	if _, err = l.ask(ctx, http.MethodPost, "/v1/join", q, &r); err == nil {
		l.id = pki.NodeIdentity{Machine: q.Machine, Attempt: q.Attempt, Cluster: r.Config.Cluster, Node: r.Config.Node}
	}
	return r, err
}

func (l *yearLink) Use(*tls.Certificate) {}

func (l *yearLink) Close() {
	l.y.mu.Lock()
	defer l.y.mu.Unlock()
	if l.y.said[l.m.ID()].id == l.id {
		delete(l.y.said, l.m.ID())
	}
}

func (l *yearLink) Config(ctx context.Context) (*wire.NodeConfig, error) {
	c := new(wire.NodeConfig)
	_, err := l.ask(ctx, http.MethodGet, "/v1/config", nil, c)
	return c, err
}

func (l *yearLink) Watch(ctx context.Context, generation int64) (*wire.NodeConfig, error) {
	c := new(wire.NodeConfig)
	code, err := l.ask(ctx, http.MethodGet, fmt.Sprintf("/v1/watch?generation=%d", generation), nil, c)
	if err != nil || code != http.StatusOK {
		if err == nil { // a server that ended; not again at once
			err = muster.Errorf(muster.EUnavailable, "no news")
		}
		return nil, err
	}
	return c, nil
}

func (l *yearLink) Launched(ctx context.Context, end wire.LaunchEnd, out io.Reader) (r wire.LaunchReply, err error) {
	s := l.y.server()
	if s == nil || ctx.Err() != nil {
		return r, muster.Errorf(muster.EUnavailable, "no server answers")
	}
	head, err := json.Marshal(end)
	if err != nil {
		return r, err
	}
	body, err := io.ReadAll(io.MultiReader(bytes.NewReader(append(head, '\n')), out))
	if err != nil {
		return r, err
	}
	_, err = s.ask(ctx, l.id, l.m.Facts().Management.String(), http.MethodPost, "/v1/launches", raw(body), &r)
	return r, err
}

// raw is sent as it is.
type raw []byte

func (l *yearLink) Report(ctx context.Context, q *wire.Report) (r wire.ReportReply, fresh bool, err error) {
	if _, err = l.ask(ctx, http.MethodPost, "/v1/report", q, &r); err == nil {
		l.y.mu.Lock()
		l.y.said[l.m.ID()] = yearWord{l.id, *q}
		l.y.mu.Unlock()
	}
	return r, false, err
}
