package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon"
	"github.com/muster-hpc/muster/netboot/dhcp"
	"github.com/muster-hpc/muster/netboot/rack"
	"github.com/muster-hpc/muster/netboot/web"
)

// metalFlags say how bare machines are reached.
type metalFlags struct {
	net, unknown, trust, vlans, console string
	ranges, guests, args                []string
	proxy, secret                       bool
	mtu                                 int
	rate                                float64
	window                              int
}

func (f *metalFlags) add(set *pflag.FlagSet) {
	l := rack.DefaultLimits()
	set.StringVar(&f.net, "metal-net", "", "interface of the network from which bare machines boot; nothing is answered elsewhere")
	set.StringSliceVar(&f.ranges, "metal-range", nil, "addresses for bare machines, such as 10.0.0.16-10.0.0.99 (default: most of the network's lower half)")
	set.StringSliceVar(&f.guests, "metal-guests", nil, "addresses for machines that nobody registered (default: the rest of that half)")
	set.BoolVar(&f.proxy, "metal-proxy", false, "another server lends the addresses of that network")
	set.IntVar(&f.mtu, "metal-mtu", 0, "largest packet that every port of that network carries, if machines are to use it: 9000 has them take in images faster (0: they keep the usual 1500)")
	set.StringVar(&f.unknown, "metal-unknown", "discover", "what machines get that nobody registered: discover (they tell what they are, and wait for approval) or ignore")
	set.StringVar(&f.trust, "metal-trust", string(muster.TrustNetwork), "the least that must vouch for a machine before it becomes a node: network, port or tpm")
	set.StringVar(&f.vlans, "metal-vlans", "100-1999", "networks of the switches that clusters may have")
	set.BoolVar(&f.secret, "metal-secret-images", false, "machines have their images over TLS alone: slower, and for images that nobody on that network may read")
	set.StringVar(&f.console, "metal-console", "tty0,ttyS0,115200n8", "where the kernels of bare machines print, each DEVICE[,OPTIONS]; the last one shows the boot's stages")
	set.StringSliceVar(&f.args, "metal-args", nil, "further arguments of the kernels of bare machines, such as iommu=pt,hugepages=512")
	set.Float64Var(&f.rate, "rack-rate", l.Rate, "how many machines of a rack are switched on in a second, at most")
	set.IntVar(&f.window, "rack-window", l.Window, "how many machines of a rack boot at once, at most")
}

// read makes what the server takes of the flags, or says everything that is wrong.
func (f *metalFlags) read() (daemon.Metal, error) {
	m := daemon.Metal{Interface: f.net, Proxy: f.proxy, SecretImages: f.secret, MTU: f.mtu, Least: muster.Trust(f.trust)}
	e := muster.Errorf(muster.EInvalid, "bare machines cannot be served so").Because(muster.ReasonHasProblems)
	bad := func(flag, hint, format string, args ...any) {
		e.Problems = append(e.Problems, muster.Problem{Field: "--" + flag, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	read := func(flag string, texts []string) (out []dhcp.Range) {
		for _, text := range texts {
			r, err := dhcp.ParseRange(text)
			if err != nil {
				bad(flag, "write 10.0.0.10-10.0.0.99", "%q is not a range of addresses", text)
				continue
			}
			out = append(out, r)
		}
		return out
	}
	m.Ranges, m.Guests = read("metal-range", f.ranges), read("metal-guests", f.guests)
	if f.mtu != 0 && (f.mtu < 1280 || f.mtu > 65535) {
		bad("metal-mtu", "1500 is usual, 9000 where the whole network does", "%d is not the size of a packet", f.mtu)
	}
	switch f.unknown {
	case "discover":
	case "ignore":
		m.Ignore = true
	default:
		bad("metal-unknown", "use discover or ignore", "%q is neither", f.unknown)
	}
	switch m.Least {
	case muster.TrustNetwork, muster.TrustPort, muster.TrustTPM:
	default:
		bad("metal-trust", "use network, port or tpm", "%q is no level of trust", f.trust)
	}
	if n, err := fmt.Sscanf(f.vlans, "%d-%d", &m.VLANs[0], &m.VLANs[1]); err != nil || n != 2 || m.VLANs[0] < 2 || m.VLANs[1] > 4000 || m.VLANs[1] <= m.VLANs[0] {
		bad("metal-vlans", "write two numbers from 2 to 4000, such as 100-1999", "%q are no networks", f.vlans)
	}
	for _, a := range f.args {
		name, _, _ := strings.Cut(a, "=")
		switch {
		case !web.Argument(a):
			bad("metal-args", "write them as NAME or NAME=VALUE, separated by commas, without blanks and quotes", "%q cannot be an argument of a kernel here", a)
		case strings.HasPrefix(name, "muster.") || slices.Contains([]string{"init", "initrd", "rdinit", "root"}, name):
			bad("metal-args", "leave it out", "%q says what a machine boots, which is Muster's to say", a)
		}
	}
	m.Args = append(slices.Clone(f.args), consoles(f.console)...)
	l := rack.DefaultLimits()
	l.Rate, l.Window = f.rate, f.window
	l.Burst = min(l.Burst, max(1, f.window))
	if err := l.Check(); err != nil {
		bad("rack-rate", "see --rack-rate and --rack-window", "%v", err)
	}
	m.Limits = &l
	if len(e.Problems) > 0 {
		return m, e
	}
	return m, nil
}

// consoles makes console=DEVICE arguments: a word that begins with a letter begins
// another device.
func consoles(text string) []string {
	args := []string{"quiet"}
	for _, w := range strings.Split(text, ",") {
		switch {
		case w == "":
		case w[0] >= '0' && w[0] <= '9' && len(args) > 1:
			args[len(args)-1] += "," + w
		default:
			args = append(args, "console="+w)
		}
	}
	return args
}
