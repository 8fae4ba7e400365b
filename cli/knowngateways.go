package cli

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// knownGateways is how the gateways of a server are reached that are processes of their own, kept for when the server
// is away. Nothing of it is secret.
type knownGateways struct {
	Server        string         `json:"server"`
	Got           time.Time      `json:"got"`
	User          string         `json:"user"`
	HostAuthority string         `json:"host_authority"`
	Gateways      []knownGateway `json:"gateways"`
}

type knownGateway struct {
	Hosts   []string `json:"hosts"`
	Address string   `json:"address"`
	HostKey string   `json:"host_key"`
}

const knownGatewaysDoc document.Kind[knownGateways] = "known-gateways/1"

// knownAge is how old what is kept may be before a command that needs nothing of it asks anew.
const knownAge = 12 * time.Hour

// goneAge is after how long a gateway that the server has not heard of is not tried.
const goneAge = time.Hour

// knownFile is where the gateways of the server are kept; "": nowhere.
func (a *app) knownFile() string {
	place := a.env.getenv("XDG_CACHE_HOME")
	if home := a.env.getenv("HOME"); !filepath.IsAbs(place) {
		if info, err := os.Stat(home); err != nil || !info.IsDir() || !filepath.IsAbs(home) {
			return ""
		}
		place = filepath.Join(home, ".cache")
	}
	return filepath.Join(place, "muster", fmt.Sprintf("gateways-%.8x.json", sha256.Sum256([]byte(a.serverName()))))
}

func (a *app) serverName() string {
	return first(a.server, a.env.getenv("MUSTER_SERVER"), client.DefaultServer)
}

// gatewayInfo asks the server for its gateways, and keeps how they are reached.
func (a *app) gatewayInfo(ctx context.Context, k *client.Client) (wire.Gateway, error) {
	g, err := k.Gateway(ctx)
	if err == nil {
		a.remember(g)
	}
	return g, err
}

// remember keeps how gateways are reached.
func (a *app) remember(g wire.Gateway) {
	name := a.knownFile()
	known := knownGateways{Server: a.serverName(), User: g.User, HostAuthority: g.HostAuthority}
	heard := false // the server hears of them anew when it has started
	for _, p := range g.Gateways {
		heard = heard || !p.Seen.IsZero()
		if p.Address != "" && p.HostKey != "" && time.Since(p.Seen) < goneAge {
			known.Gateways = append(known.Gateways, knownGateway{Hosts: append([]string{}, p.Hosts...), Address: p.Address, HostKey: p.HostKey})
		}
	}
	if name == "" || g.User == "" {
		return
	}
	if old, ok := a.recall(); ok {
		if !heard && len(g.Gateways) > 0 {
			known.Gateways = old.Gateways
		}
		known.Got = old.Got
		if reflect.DeepEqual(old, known) && time.Since(old.Got) < knownAge {
			return
		}
	}
	known.Got = time.Now().UTC().Truncate(time.Second)
	text, err := knownGatewaysDoc.Encode(&known)
	if err != nil || os.MkdirAll(filepath.Dir(name), 0o700) != nil {
		return
	}
	_ = atomicfile.ReplaceVolatile(name, text, 0o600) // without it the commands work as long as the server does
}

// recall is what was kept. False: nothing.
func (a *app) recall() (known knownGateways, ok bool) {
	name := a.knownFile()
	if name == "" {
		return known, false
	}
	text, err := os.ReadFile(name)
	if err == nil {
		known, err = knownGatewaysDoc.Decode(name, text)
	}
	return known, err == nil && known.Server == a.serverName()
}

// gatewayPlace is where a gateway can be connected to, and what its host key is looked up under.
type gatewayPlace struct{ host, port, name, hostKey string }

func (p gatewayPlace) address() string { return net.JoinHostPort(p.host, p.port) }

// refresh asks the server for its gateways where what is kept is old.
func (a *app) refresh(ctx context.Context, k *client.Client) {
	if known, ok := a.recall(); ok && time.Since(known.Got) < knownAge {
		return
	}
	asking, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	_, _ = a.gatewayInfo(asking, k)
}

// knowsGateway reports whether there is one that works without the server.
func (a *app) knowsGateway() bool {
	known, ok := a.recall()
	return ok && len(known.Gateways) > 0
}

// places are those of all gateways: under their host names, and at the addresses where they listen.
func (k knownGateways) places(apiHost string) (list []gatewayPlace) {
	for _, g := range k.Gateways {
		host, port, err := net.SplitHostPort(g.Address)
		if err != nil {
			continue
		}
		for _, name := range g.Hosts {
			list = append(list, gatewayPlace{name, port, name, g.HostKey})
		}
		if at, err := netip.ParseAddr(host); err == nil && at.IsUnspecified() {
			if len(g.Hosts) > 0 {
				continue
			}
			host = first(apiHost, "127.0.0.1")
		}
		list = append(list, gatewayPlace{host, port, first(append(g.Hosts, host)...), g.HostKey})
	}
	return list
}

// knownHosts are the lines of known_hosts for a gateway.
func (k knownGateways) knownHosts(p gatewayPlace) string {
	return knownLine("", p.name, p.hostKey) + knownLine("@cert-authority ", p.name, k.HostAuthority)
}

// knownLine is a line of known_hosts; "" for what is no key.
func knownLine(marker, names, key string) string {
	parsed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key))
	if err != nil {
		return ""
	}
	return marker + names + " " + string(ssh.MarshalAuthorizedKey(parsed))
}
