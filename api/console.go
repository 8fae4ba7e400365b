package api

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Consoles are read, and typed into.
type Consoles interface {
	NodeConsole(ctx context.Context, who muster.Actor, ref, node string, shell bool) (io.ReadWriteCloser, error)
	MachineConsole(ctx context.Context, who muster.Actor, id muster.MachineID, shell bool) (io.ReadWriteCloser, error)
}

// ConsoleFlags are what every console route takes.
type ConsoleFlags struct {
	Shell   bool   `query:"shell" doc:"A root shell inside the machine, instead of what it printed"`
	Upgrade string `header:"Upgrade" maxLength:"64" doc:"muster-console"`
}

type nodeConsoleInput struct {
	ClusterRef
	Node string `path:"node" maxLength:"128" doc:"Name of the node; head means the one that carries the head"`
	ConsoleFlags
}

type machineConsoleInput struct {
	Machine string `path:"machine" maxLength:"128"`
	ConsoleFlags
}

func (a *API) consoleRoutes() {
	consoleRoute(a, huma.Operation{
		OperationID: "console", Path: "/v1/clusters/{cluster}/nodes/{node}/console", Tags: []string{"nodes"},
		Summary: "Read a node's console, or open a root shell on it",
	}, func(ctx context.Context, in *nodeConsoleInput) (io.ReadWriteCloser, string, error) {
		if in.Upgrade != wire.ConsoleProtocol {
			return nil, in.Upgrade, nil
		}
		far, err := a.service.NodeConsole(ctx, who(ctx), in.Cluster, in.Node, in.Shell)
		return far, in.Upgrade, err
	})
	consoleRoute(a, huma.Operation{
		OperationID: "machine-console", Path: "/v1/machines/{machine}/console", Tags: []string{"machines"},
		Summary: "Read a machine's console, or open a root shell on it",
	}, func(ctx context.Context, in *machineConsoleInput) (io.ReadWriteCloser, string, error) {
		if in.Upgrade != wire.ConsoleProtocol {
			return nil, in.Upgrade, nil
		}
		far, err := a.service.MachineConsole(ctx, who(ctx), muster.MachineID(in.Machine), in.Shell)
		return far, in.Upgrade, err
	})
}

// consoleRoute turns its connection into a console.
func consoleRoute[I any](a *API, op huma.Operation, open func(context.Context, *I) (io.ReadWriteCloser, string, error)) {
	op.Method, op.DefaultStatus = http.MethodGet, http.StatusSwitchingProtocols
	op.Description = "Send 'Connection: Upgrade' and 'Upgrade: muster-console'. After status 101 the server sends what the " +
		"machine prints; the client sends frames: a byte 'i' (typed) or 's' (size of the terminal: columns and rows, two bytes " +
		"each), the length in two bytes, and the data. Every session leaves a line in the history."
	op.Responses = map[string]*huma.Response{"101": {Description: "The connection is a console now"}}
	a.prepare(&op)
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		if err := live(ctx); err != nil {
			return nil, a.fail(ctx, err)
		}
		far, protocol, err := open(ctx, in)
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		if protocol != wire.ConsoleProtocol {
			return nil, a.fail(ctx, muster.Errorf(muster.EInvalid, "a console needs a connection that is upgraded").
				WithHint("send 'Connection: Upgrade' and 'Upgrade: %s' over HTTP/1.1", wire.ConsoleProtocol))
		}
		return &huma.StreamResponse{Body: func(hctx huma.Context) {
			r, w := humago.Unwrap(hctx)
			a.console(w, r, far)
		}}, nil
	})
}

// console joins the connection of a request with a console until one of them
// ends. It closes far.
func (a *API) console(w http.ResponseWriter, r *http.Request, far io.ReadWriteCloser) {
	end := sync.OnceFunc(func() { _ = far.Close() })
	defer end()
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		a.write(w, r, muster.Errorf(muster.EInvalid, "this connection cannot become a console").WithHint("use HTTP/1.1").Wrap(err))
		return
	}
	defer near.Close()
	_ = near.SetDeadline(time.Time{})
	if _, err := io.WriteString(near, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+wire.ConsoleProtocol+"\r\n\r\n"); err != nil {
		return
	}
	defer a.whileAllowed(r, func() {
		_ = near.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(near, "\r\n"+rightEnded+"\r\n")
		near.Close()
		end()
	})()
	done := make(chan struct{})
	go func() {
		select {
		case <-a.closing:
			near.Close()
			end()
		case <-done:
		}
	}()
	var both sync.WaitGroup
	both.Go(func() {
		typeInto(far, buffered.Reader)
		end() // whoever hangs up ends it
	})
	both.Go(func() {
		_, _ = io.Copy(near, far)
		near.Close()
	})
	both.Wait()
	close(done)
}

// typeInto passes frames on until the connection ends.
func typeInto(far io.Writer, from *bufio.Reader) {
	for {
		kind, data, err := wire.ReadConsoleFrame(from)
		if err != nil {
			return
		}
		switch kind {
		case wire.ConsoleInput:
			if _, err := far.Write(data); err != nil {
				return
			}
		case wire.ConsoleSize:
			if sized, ok := far.(interface{ Resize(columns, rows int) error }); ok {
				_ = sized.Resize(wire.ConsoleColumnsRows(data))
			}
		}
	}
}
