package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// connect is what ssh runs as its ProxyCommand where there is a gateway.
func (a *app) connectNode() *cobra.Command {
	var identity string
	c := &cobra.Command{
		Use: "connect CLUSTER[.NODE][+PROJECT]", Short: "Connect ssh with a node, through the straight door of the gateway",
		Long: `Opens a connection to the SSH port of a node, gives it to the ssh that runs this command and
ends: nothing then stands between ssh and the node but the network. It is a ProxyCommand, and
'muster ssh-config' writes it; ProxyUseFdpass lets ssh take the connection.

Where the gateway cannot be reached, or there is none, the connection goes through the server.
While the server is away, a gateway that is a process of its own is asked with your key.`,
		Example: `  ssh -o ProxyCommand='muster connect %h' -o ProxyUseFdpass=yes alice@cfd`,
		Args:    exactly("CLUSTER[.NODE][+PROJECT]"), ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			conn, other, err := a.straightOnce(c.Context(), k, args[0], identity)
			if err != nil {
				if !other {
					return err
				}
				return a.connectThroughServer(c.Context(), args[0])
			}
			defer conn.Close()
			out, ok := a.env.Out.(*os.File)
			if ok && passFile(out, conn) == nil {
				return nil
			}
			return copyBoth(a.env.In, a.env.Out, conn)
		},
	}
	identityFlag(c, &identity)
	return c
}

// straightOnce connects with a node through the straight door: with a ticket of the server, or of a gateway where the server
// is away or has none of its own. other reports whether another way may lead there.
func (a *app) straightOnce(ctx context.Context, k *client.Client, target, identity string) (conn *os.File, other bool, _ error) {
	conn, err := straight(ctx, k, target, a.apiHost())
	switch {
	case err == nil:
		a.refresh(ctx, k)
	case muster.ReasonOf(err) == muster.ReasonNoGateway:
		a.refresh(ctx, k)
		if a.knowsGateway() {
			conn, err = a.straightByKey(ctx, target, identity)
		}
	case away(err) && a.knowsGateway():
		conn, err = a.straightByKey(ctx, target, identity)
		return conn, false, err
	}
	return conn, !final(err), err
}

// final reports whether no other way leads there either.
func final(err error) bool {
	switch muster.CodeOf(err) {
	case muster.EConflict, muster.EUnauth, muster.EInvalid:
		return true
	}
	return false
}

// connectTime is how long the gateway may take for a connection.
const connectTime = 10 * time.Second

// straight connects with a node through the straight door.
func straight(ctx context.Context, k *client.Client, target, apiHost string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	request := wire.TicketRequest{Target: target}
	from, own := bound(ctx, apiHost)
	if from != nil {
		defer func() {
			if from != nil {
				_ = from.Close()
			}
		}()
		request.Client = own.String()
	}
	t, err := k.GatewayTicket(ctx, request)
	if err != nil {
		return nil, err
	}
	if t.Secret == "" && from != nil {
		to, err := netip.ParseAddrPort(t.Address)
		if err == nil {
			err = connectFrom(from, to)
		}
		if err == nil {
			out := from
			from = nil
			return out, nil
		}
		// Something between does not let it pass: with a secret it comes another way.
		if t, err = k.GatewayTicket(ctx, wire.TicketRequest{Target: target}); err != nil {
			return nil, err
		}
	}
	return withSecret(ctx, t, apiHost)
}

// bound is a socket with an address and port of its own, by which the server's host is reached.
// None: the server is this host, or is reached by IPv6.
func bound(ctx context.Context, apiHost string) (*os.File, netip.AddrPort) {
	none := netip.AddrPort{}
	if apiHost == "" {
		return nil, none
	}
	probe, err := (&net.Dialer{}).DialContext(ctx, "udp4", net.JoinHostPort(apiHost, "9")) // sends nothing
	if err != nil {
		return nil, none
	}
	at, err := netip.ParseAddrPort(probe.LocalAddr().String())
	_ = probe.Close()
	if err != nil || at.Addr().IsLoopback() {
		return nil, none
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, none
	}
	f := os.NewFile(uintptr(fd), "connection")
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: at.Addr().As4()}); err != nil {
		_ = f.Close()
		return nil, none
	}
	name, err := unix.Getsockname(fd)
	in4, ok := name.(*unix.SockaddrInet4)
	if err != nil || !ok {
		_ = f.Close()
		return nil, none
	}
	return f, netip.AddrPortFrom(at.Addr(), uint16(in4.Port))
}

// kernelTime is how long a connection that the kernel lets through may take: a firewall that says
// nothing is no reason to wait for long.
const kernelTime = 3 * time.Second

// connectFrom connects a socket that is bound.
func connectFrom(f *os.File, to netip.AddrPort) error {
	fd := int(f.Fd()) // blocking from here on
	if !to.Addr().Is4() {
		return muster.Errorf(muster.EUnavailable, "the gateway names no IPv4 address").WithHint("ask your administrator")
	}
	limit := unix.NsecToTimeval(int64(kernelTime))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		return err
	}
	return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{})
}

// withSecret connects with the gateway and says the secret.
func withSecret(ctx context.Context, t wire.Ticket, apiHost string) (*os.File, error) {
	host, port, err := net.SplitHostPort(t.Address)
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "the gateway is not there yet").WithHint("try again").Wrap(err)
	}
	if a, err := netip.ParseAddr(host); err == nil && a.IsUnspecified() {
		host = first(apiHost, "127.0.0.1")
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "the gateway at %s does not answer", net.JoinHostPort(host, port)).WithHint("ask your administrator").Wrap(err)
	}
	defer c.Close()
	if end, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(end)
	}
	if _, err := io.WriteString(c, "MUSTER-TICKET/1 "+t.Secret+"\n"); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(oneByOne{c}, 16) // what comes after the answer is the node's
	for range 2 {
		line, err := readLine(r)
		if err != nil {
			return nil, muster.Errorf(muster.EUnavailable, "the gateway ended the connection").WithHint("try again").Wrap(err)
		}
		if reason, refused := strings.CutPrefix(line, "NO "); refused {
			return nil, muster.Errorf(muster.EUnavailable, "%s", clean(reason)).WithHint("see 'muster show'")
		}
		if line == "OK" {
			_ = c.SetDeadline(time.Time{})
			return c.(*net.TCPConn).File()
		}
	}
	return nil, muster.Errorf(muster.EUnavailable, "what answers at %s is no gateway", t.Address).WithHint("ask your administrator")
}

// oneByOne reads no further than it is asked to.
type oneByOne struct{ io.Reader }

func (o oneByOne) Read(p []byte) (int, error) { return o.Reader.Read(p[:min(1, len(p))]) }

func readLine(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for b.Len() < 1024 {
		c, err := r.ReadByte()
		if err != nil {
			return "", err
		}
		if c == '\n' {
			return strings.TrimSuffix(b.String(), "\r"), nil
		}
		b.WriteByte(c)
	}
	return "", errors.New("a line is too long")
}

// passFile gives a file to whoever is at the other end of a socket, as ssh wants it with
// ProxyUseFdpass.
func passFile(to, f *os.File) error {
	raw, err := to.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	err = raw.Control(func(fd uintptr) {
		sendErr = unix.Sendmsg(int(fd), []byte{0}, unix.UnixRights(int(f.Fd())), nil, 0)
	})
	return errors.Join(err, sendErr)
}

// copyBoth is for an ssh that takes no connection.
func copyBoth(in io.Reader, out io.Writer, f *os.File) error {
	c, err := net.FileConn(f)
	if err != nil {
		return err
	}
	defer c.Close()
	go func() {
		_, _ = io.Copy(c, in)
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	_, err = io.Copy(out, c)
	return err
}

// connectThroughServer has a tunnel through the API in the place of a connection. ssh waits for
// this command to end where it takes a connection: the tunnel is a process of its own then.
func (a *app) connectThroughServer(ctx context.Context, target string) error {
	place, project, named := strings.Cut(target, "+")
	cluster, node, _ := strings.Cut(place, ".")
	if named {
		cluster = project + "/" + cluster
	}
	args := []string{"tunnel", cluster, first(node, "head")}
	out, ok := a.env.Out.(*os.File)
	if !ok || !isSocket(out) {
		return a.tunnelNode(ctx, cluster, first(node, "head"))
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "tunnel"), os.NewFile(uintptr(pair[1]), "ssh")
	defer ours.Close()
	defer theirs.Close()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), a.self(), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = ours, ours, os.Stderr, a.sshEnvironment()
	if err := cmd.Start(); err != nil {
		return err
	}
	return passFile(out, theirs)
}

// apiHost is the host of the server's API; "" for this one, or where it is not known.
func (a *app) apiHost() string {
	u, err := url.Parse(first(a.server, a.env.getenv("MUSTER_SERVER")))
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func isSocket(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeSocket != 0
}
