package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

func request(name string) client.Create {
	return client.Create{Body: []byte("name: " + name + "\nnodes: 2\nhead: shared\nusers: [alice]\n"), Format: "yaml"}
}

func TestLifeOfACluster(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true})
	k := s.Client("")
	created, err := k.CreateCluster(t.Context(), request("cfd"))
	if err != nil {
		t.Fatal(err)
	}
	follow(t, k, string(created.ID), muster.ClusterReady)
	show, err := k.Cluster(t.Context(), "cfd")
	if err != nil || show.Status != muster.ClusterReady || show.ReadyCount != 2 || len(show.Nodes) != 2 || show.Head != "n01" {
		t.Fatalf("%+v, %v", show, err)
	}
	machines, err := k.Machines(t.Context(), false)
	if err != nil || len(machines) != 3 || len(machines[0].Images) != 2 {
		t.Fatalf("%+v, %v", machines, err)
	}
	used := 0
	for _, m := range machines {
		if m.User == "alice" && m.Cluster == created.ID {
			used++
		}
	}
	if used != 2 {
		t.Errorf("%d machines are alice's, want 2", used)
	}
	if err := k.RemoveImage(t.Context(), "hpc"); muster.CodeOf(err) != muster.EConflict || !strings.Contains(err.Error(), "cfd") {
		t.Errorf("removing an image in use: %v", err)
	}
	if err := k.RemoveUser(t.Context(), "alice"); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("removing a user with a cluster: %v", err)
	}
	if d, err := k.DeleteCluster(t.Context(), "cfd"); err != nil || d.ID != created.ID || d.Status != muster.ClusterDeleting {
		t.Fatalf("%+v, %v", d, err)
	}
	follow(t, k, string(created.ID), muster.ClusterDeleted)
	if _, err := k.Cluster(t.Context(), "cfd"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("after its end: %v", err)
	}
	if show, err := k.Cluster(t.Context(), string(created.ID)); err != nil || show.Status != muster.ClusterDeleted {
		t.Errorf("by ID: %+v, %v", show.Status, err)
	}
	if d, err := k.DeleteCluster(t.Context(), string(created.ID)); err != nil || d.Status != muster.ClusterDeleted {
		t.Errorf("deleted again: %+v, %v", d, err)
	}
}

func follow(t *testing.T, k *client.Client, ref string, phase muster.ClusterPhase) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := k.Events(ctx, client.EventOptions{Cluster: ref, Follow: true}, func(e wire.Event) error {
		if e.Kind == muster.AuditCluster && e.To == string(phase) {
			return client.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A stream goes on over restarts of the server: every event once, in order.
func TestEventsSurviveRestarts(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	k := s.Client("")
	const total = 300
	note := func(n int) {
		err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
			return tx.Note(muster.AuditMachine, "fake-01", "", "note")
		})
		if err != nil {
			t.Error(n, err)
		}
	}
	note(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 1; n < total; n++ {
			note(n)
			if n%60 == 0 {
				s.StopServing()
				s.Serve()
			}
		}
	}()
	var last int64
	seen := 0
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := k.Events(ctx, client.EventOptions{Follow: true}, func(e wire.Event) error {
		if e.Seq != last+1 {
			t.Errorf("event %d after %d", e.Seq, last)
		}
		last = e.Seq
		if e.Text == "note" {
			seen++
		}
		if seen == total {
			return client.ErrStop
		}
		return nil
	})
	<-done
	if err != nil || seen != total {
		t.Fatalf("%d of %d: %v", seen, total, err)
	}
}

func TestEventsResumeAfter(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	k := s.Client("")
	var all []wire.Event
	if err := k.Events(t.Context(), client.EventOptions{}, func(e wire.Event) error { all = append(all, e); return nil }); err != nil || len(all) < 4 {
		t.Fatal(len(all), err)
	}
	var rest []wire.Event
	middle := all[len(all)/2].Seq
	if err := k.Events(t.Context(), client.EventOptions{After: middle}, func(e wire.Event) error { rest = append(rest, e); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(rest) == 0 || rest[0].Seq != middle+1 || len(rest) != len(all)-len(all)/2-1 {
		t.Errorf("after %d: %d events of %d", middle, len(rest), len(all))
	}
	halt := errors.New("halt")
	if err := k.Events(t.Context(), client.EventOptions{}, func(wire.Event) error { return halt }); !errors.Is(err, halt) {
		t.Errorf("a handler's error: %v", err)
	}
}

func TestTunnelCarriesBytesBothWays(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2, Build: true})
	k := s.Client("")
	created, err := k.CreateCluster(t.Context(), request("cfd"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Tunnel(t.Context(), "cfd", "n09"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("a node that is not there: %v", err)
	}
	follow(t, k, string(created.ID), muster.ClusterReady)
	if _, err := k.Tunnel(t.Context(), "cfd", "n02"); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("a node that does not answer: %v", err)
	}
	s.Dialer.To(func(muster.Machine) (net.Conn, error) {
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(far, far); far.Close() }()
		return near, nil
	})
	conn, err := k.Tunnel(t.Context(), "cfd", "head")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	text := strings.Repeat("muster ", 100000)
	go func() { _, _ = io.WriteString(conn, text) }()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("what came back differs: %v", err)
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	k, err := client.New(client.Config{Server: "unix:" + t.TempDir() + "/muster.sock"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.Clusters(t.Context(), client.ClusterFilter{})
	var e *muster.Error
	if !errors.As(err, &e) || e.Code != muster.EUnavailable || !strings.Contains(e.Message, "muster.sock") || !strings.Contains(e.Hint, "muster serve") {
		t.Errorf("%v", err)
	}
	var calls atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err = k.Events(ctx, client.EventOptions{Follow: true}, func(wire.Event) error { calls.Add(1); return nil })
	if muster.CodeOf(err) != muster.EUnavailable || calls.Load() != 0 {
		t.Errorf("a stream of a server that never answered: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                      "unix:/var/lib/muster/muster.sock",
		"unix:/a/b.sock":        "unix:/a/b.sock",
		"unix:///a/b.sock":      "unix:/a/b.sock",
		"/a/b.sock":             "unix:/a/b.sock",
		"https://h.example":     "https://h.example:7777",
		"https://h.example:1/":  "https://h.example:1",
		"https://[::1]:7":       "https://[::1]:7",
		"http://h.example":      "",
		"https://u:p@h.example": "",
		"https://h.example/x":   "",
		"https://h.example?a=b": "",
		"ftp://h":               "",
		"h.example:7777":        "",
		"unix:":                 "",
		"https://":              "",
		"https://h.example/%zz": "",
	} {
		got, err := client.ParseAddress(in)
		switch {
		case want == "" && muster.CodeOf(err) != muster.EInvalid:
			t.Errorf("%q gives %v, %v", in, got, err)
		case want != "" && (err != nil || got.String() != want):
			t.Errorf("%q gives %v, %v; want %s", in, got, err, want)
		}
	}
	if _, err := client.New(client.Config{Server: "https://h.example"}); muster.CodeOf(err) != muster.EUnauth {
		t.Errorf("https without a token: %v", err)
	}
}
