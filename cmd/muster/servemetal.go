package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon"
	"github.com/muster-hpc/muster/metal/bootqueue"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
	"github.com/muster-hpc/muster/metal/netboot/httpboot"
)

// metalFlags say how bare machines are reached.
type metalFlags struct {
	net, unknown, trust, vlans, console string
	ranges, discovery, args, racks      []string
	proxy, secret, hibernate            bool
	mtu                                 int
	rate                                float64
	window                              int
}

func (f *metalFlags) add(set *pflag.FlagSet) {
	l := bootqueue.DefaultLimits()
	set.StringVar(&f.net, "metal-interface", "", "interface of the network that bare machines boot from; nothing is served on any other")
	set.StringSliceVar(&f.ranges, "metal-range", nil, "DHCP range for registered bare machines, such as 10.0.0.16-10.0.0.99 (default: most of the lower half of the network)")
	set.StringSliceVar(&f.discovery, "metal-discovery-range", nil, "DHCP range for machines that are not registered (default: the rest of the lower half)")
	set.BoolVar(&f.proxy, "metal-proxy-dhcp", false, "answer as a proxy DHCP server: another server on that network assigns the addresses")
	set.IntVar(&f.mtu, "metal-mtu", 0, "MTU of that network, if every port of it carries it: with 9000 machines load images faster (0: leave the default of 1500)")
	set.StringVar(&f.unknown, "metal-unknown", "discover", "what to do with machines that are not registered: discover (boot them once, list them for approval) or ignore")
	set.StringVar(&f.trust, "metal-min-trust", string(muster.TrustNetwork), "minimum trust level required before a machine becomes a node: network, port or tpm")
	set.StringVar(&f.vlans, "metal-vlans", "100-1999", "range of VLANs that clusters may use")
	set.BoolVar(&f.secret, "metal-images-over-tls", false, "serve images over TLS only: slower, but nobody else on that network can read them")
	set.BoolVar(&f.hibernate, "metal-hibernate", false, "let clusters of bare machines hibernate: their memory lies on the machines' own disks then, encrypted with a key that the server keeps")
	set.StringVar(&f.console, "metal-console", "tty0,ttyS0,115200n8", "kernel consoles of bare machines, each DEVICE[,OPTIONS]; the last one shows the boot stages")
	set.StringSliceVar(&f.args, "metal-kernel-args", nil, "additional kernel arguments of bare machines, such as iommu=pt,hugepages=512")
	set.Float64Var(&f.rate, "rack-power-on-rate", l.Rate, "maximum number of machines per rack that are powered on per second")
	set.IntVar(&f.window, "rack-max-booting", l.Window, "maximum number of machines per rack that boot at the same time")
	set.StringArrayVar(&f.racks, "rack-limits", nil, "limits of some racks: RACK[,max-booting=N][,power-on-rate=R]; RACK is a name or a pattern; may be repeated")
}

// read makes what the server takes of the flags, or says everything that is wrong.
func (f *metalFlags) read() (daemon.Metal, error) {
	m := daemon.Metal{Interface: f.net, Proxy: f.proxy, SecretImages: f.secret, Hibernate: f.hibernate, MTU: f.mtu, Least: muster.Trust(f.trust)}
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
	m.Ranges, m.Discovery = read("metal-range", f.ranges), read("metal-discovery-range", f.discovery)
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
		bad("metal-min-trust", "use network, port or tpm", "%q is not a level of trust", f.trust)
	}
	if n, err := fmt.Sscanf(f.vlans, "%d-%d", &m.VLANs[0], &m.VLANs[1]); err != nil || n != 2 || m.VLANs[0] < 2 || m.VLANs[1] > 4000 || m.VLANs[1] <= m.VLANs[0] {
		bad("metal-vlans", "write two numbers from 2 to 4000, such as 100-1999", "%q is not a range of VLANs", f.vlans)
	}
	for _, a := range f.args {
		name, _, _ := strings.Cut(a, "=")
		switch {
		case !httpboot.Argument(a):
			bad("metal-kernel-args", "write them as NAME or NAME=VALUE, separated by commas, without blanks and quotes", "%q cannot be an argument of a kernel here", a)
		case strings.HasPrefix(name, "muster.") || slices.Contains([]string{"init", "initrd", "rdinit", "root"}, name):
			bad("metal-kernel-args", "leave it out", "%q says what a machine boots, which is Muster's to say", a)
		}
	}
	m.Args = append(slices.Clone(f.args), consoles(f.console)...)
	l := rackLimits(f.rate, f.window)
	if err := l.Check(); err != nil {
		bad("rack-power-on-rate", "see --rack-power-on-rate and --rack-max-booting", "%v", err)
	}
	m.Limits = &l
	for _, text := range f.racks {
		r, err := f.rack(text)
		if err != nil {
			bad("rack-limits", "write RACK,max-booting=N,power-on-rate=R, such as gpu-*,max-booting=8,power-on-rate=0.5", "%q: %v", text, err)
			continue
		}
		m.Racks = append(m.Racks, r)
	}
	if len(e.Problems) > 0 {
		return m, e.Listing(e.Problems)
	}
	return m, nil
}

// rackLimits are the limits of a rack with this rate and window.
func rackLimits(rate float64, window int) bootqueue.Limits {
	l := bootqueue.DefaultLimits()
	l.Rate, l.Window = rate, window
	// Machines are let go once a second: fewer at one time than that would be the rate.
	l.Burst = min(max(l.Burst, int(math.Ceil(rate))), max(1, window))
	return l
}

// rack reads the limits of some racks. What they do not say is as in every rack.
func (f *metalFlags) rack(text string) (out daemon.RackLimits, err error) {
	name, rest, _ := strings.Cut(text, ",")
	if name == "" || strings.Contains(name, "=") {
		return out, errors.New("it begins with no name of a rack")
	}
	rate, window := f.rate, f.window
	for part := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch {
		case part == "":
		case key == "max-booting":
			window, err = strconv.Atoi(value)
		case key == "power-on-rate":
			rate, err = strconv.ParseFloat(value, 64)
		default:
			return out, fmt.Errorf("%q is neither max-booting nor power-on-rate", key)
		}
		if err != nil {
			return out, fmt.Errorf("%q is not a number", value)
		}
	}
	out = daemon.RackLimits{Name: name, Limits: rackLimits(rate, window)}
	return out, out.Limits.Check()
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
