package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Source is where the bytes of an image come from. What it gives is believed only
// once its digest was compared.
type Source interface {
	// Name tells people which one it is.
	Name() string
	// Read writes the bytes from..to (to not included) of a file to w, and stops at
	// the first error: what was written by then is kept.
	Read(ctx context.Context, file string, from, to int64, w io.Writer) error
}

// web is a server's files over HTTPS with ranges.
type web struct {
	server, key string
	plain       string // the URL of the one file that is there without encryption; "": all, over TLS
	http        *http.Client
}

// stall is how long a source may give nothing before it is asked again.
const stall = 15 * time.Second

// newWeb makes a Source of a server with the same authority as the one that gave
// the order. key opens the files of this boot.
func newWeb(server, key string, authority [32]byte, now func() time.Time) *web {
	http1 := new(http.Protocols)
	http1.SetHTTP1(true) // one connection for each piece under way
	return &web{server: strings.TrimSuffix(server, "/"), key: key, http: &http.Client{
		Transport: &http.Transport{
			DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialPinned(ctx, server, authority, now)
			},
			Protocols: http1, MaxIdleConnsPerHost: connections, DisableCompression: true,
			ResponseHeaderTimeout: stall, MaxResponseHeaderBytes: 64 << 10, ReadBufferSize: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// newPlain makes a Source of one file that comes without encryption.
func newPlain(url string) *web {
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	return &web{server: url, plain: url, http: &http.Client{
		Transport: &http.Transport{
			Protocols: http1, MaxIdleConnsPerHost: connections, DisableCompression: true,
			ResponseHeaderTimeout: stall, MaxResponseHeaderBytes: 64 << 10, ReadBufferSize: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (s *web) Name() string { return s.server }

func (s *web) Read(ctx context.Context, file string, from, to int64, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	url := s.plain
	if url == "" {
		url = s.server + wire.BootFilePath + file
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if s.plain == "" { // where others listen nothing is shown
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, to-1))
	resp, err := s.http.Do(req)
	if err != nil {
		var e *muster.Error
		if errors.As(err, &e) {
			return e
		}
		return muster.Errorf(muster.EUnavailable, "%s does not answer", s.server).Wrap(err)
	}
	defer resp.Body.Close()
	whole := resp.StatusCode == http.StatusOK && from == 0 && resp.ContentLength == to
	if resp.StatusCode != http.StatusPartialContent && !whole {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 16<<10))
		if resp.StatusCode == http.StatusOK {
			return muster.Errorf(muster.EUnavailable, "%s gives no ranges of files", s.server)
		}
		return refusal(resp.StatusCode, b)
	}
	var first, last, size int64
	if !whole {
		if n, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size); n < 2 || first != from || last != to-1 {
			return muster.Errorf(muster.EUnavailable, "%s gives another range than was asked for", s.server).Wrap(err)
		}
	}
	// A connection that stays open and gives nothing is no connection.
	idle := time.AfterFunc(stall, func() { cancel(fmt.Errorf("nothing came for %v", stall)) })
	defer idle.Stop()
	n, err := io.Copy(w, progress{io.LimitReader(resp.Body, to-from), idle})
	if err == nil && n < to-from {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return muster.Errorf(muster.EUnavailable, "%s was cut off after %d of %d bytes", s.server, n, to-from).Wrap(err)
	}
	return nil
}

// progress winds a watch up with all that arrives.
type progress struct {
	r     io.Reader
	watch *time.Timer
}

func (p progress) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if n > 0 {
		p.watch.Reset(stall)
	}
	return n, err
}
