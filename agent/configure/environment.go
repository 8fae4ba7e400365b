package configure

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/wire"
)

// environment sets limits, proxy and time for every session.
func (c *Configurer) environment(cfg *wire.NodeConfig) error {
	var memlock, stack, nofile unix.Rlimit
	for what, l := range map[int]*unix.Rlimit{unix.RLIMIT_MEMLOCK: &memlock, unix.RLIMIT_STACK: &stack, unix.RLIMIT_NOFILE: &nofile} {
		if err := unix.Getrlimit(what, l); err != nil {
			return err
		}
	}
	list := []wire.File{
		{Path: "/etc/security/limits.d/50-muster.conf", Content: limits(memlock.Max, stack.Max, nofile.Max)},
		{Path: "/etc/profile.d/muster.sh", Content: profile(cfg, c.hasRDMA())},
	}
	if !c.files.exists("/etc/locale.conf") {
		// Programs then agree on what a character is. Releases that boot with
		// tmpfiles make /etc/default/locale a link to this one.
		list = append(list, wire.File{Path: "/etc/locale.conf", Content: "LANG=C.UTF-8\n"})
	}
	aptConf := "/etc/apt/apt.conf.d/90muster-proxy"
	if cfg.ProxyURL != "" && c.files.exists("/etc/apt/apt.conf.d") {
		list = append(list, wire.File{Path: aptConf, Content: fmt.Sprintf("Acquire::http::Proxy %q;\nAcquire::https::Proxy %q;\n", cfg.ProxyURL, cfg.ProxyURL)})
	} else if err := c.files.remove(aptConf); err != nil {
		return err
	}
	c.allowPing()
	if err := c.timezone(cfg); err != nil {
		return err
	}
	if len(cfg.Time) > 0 {
		list = append(list, wire.File{Path: "/etc/systemd/timesyncd.conf.d/muster.conf", Content: "[Time]\nNTP=" + strings.Join(cfg.Time, " ") + "\n"})
	}
	if err := c.plainFiles(none, list); err != nil {
		return err
	}
	return c.files.block("/etc/environment", messageLines(cfg, c.hasRDMA(), "")+proxyLines(cfg, ""))
}

// limits raises what a session may have to what this service may have. More
// cannot be given from inside a namespace, and a session that is promised more
// is refused by PAM.
func limits(memlock, stack, nofile uint64) string {
	var b strings.Builder
	b.WriteString("# Written by Muster. Changes here do not last.\n")
	const most = 1 << 20
	for _, who := range []string{"*", "root"} {
		fmt.Fprintf(&b, "%s - memlock %s\n", who, kibibytes(memlock))
		fmt.Fprintf(&b, "%s hard stack %s\n", who, kibibytes(stack))
		fmt.Fprintf(&b, "%s hard nofile %d\n", who, min(nofile, most))
	}
	return b.String()
}

func kibibytes(limit uint64) string {
	if limit == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return fmt.Sprint(limit / 1024)
}

// profile is read by login shells.
func profile(cfg *wire.NodeConfig, rdma bool) string {
	var b strings.Builder
	b.WriteString("# Written by Muster. Changes here do not last.\n")
	fmt.Fprintf(&b, "export MUSTER_CLUSTER=%s MUSTER_CLUSTER_ID=%s MUSTER_NODE=%s\n", quote(cfg.ClusterName), quote(string(cfg.Cluster)), quote(cfg.Node))
	if cfg.UserRoot {
		// Open MPI asks not to be run by root; here that is what users are.
		b.WriteString("export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n")
	}
	b.WriteString(messageLines(cfg, rdma, "export "))
	b.WriteString(proxyLines(cfg, "export "))
	return b.String()
}

// messageLines lead UCX and libfabric, which MPICH and others send by, to the message
// network: they take the first interface otherwise. Where there is an adapter for RDMA, they
// find that by themselves. They stand in /etc/environment, too: jobs have the environment of
// the session that they come from.
func messageLines(cfg *wire.NodeConfig, rdma bool, prefix string) string {
	if cfg.Interface == "" || rdma {
		return ""
	}
	return prefix + "UCX_NET_DEVICES=" + cfg.Interface + "\n" + prefix + "FI_TCP_IFACE=" + cfg.Interface + "\n"
}

// hasRDMA reports whether this node has an adapter for RDMA.
func (c *Configurer) hasRDMA() bool {
	list, err := os.ReadDir(c.files.at("/sys/class/infiniband"))
	return err == nil && len(list) > 0
}

// allowPing lets everybody send echo requests: by default the kernel lets nobody. In a user
// namespace only numbers that it maps can be named.
func (c *Configurer) allowPing() {
	const file = "/proc/sys/net/ipv4/ping_group_range"
	if !c.files.exists(file) {
		return
	}
	var err error
	for _, most := range []string{"2147483647", "65535"} {
		if err = os.WriteFile(c.files.at(file), []byte("0 "+most), 0o644); err == nil {
			return
		}
	}
	c.log.Warn("ping stays for root alone", "error", err)
}

func proxyLines(cfg *wire.NodeConfig, prefix string) string {
	if cfg.ProxyURL == "" {
		return ""
	}
	direct := []string{"localhost", "127.0.0.1"}
	for _, h := range cfg.Hosts {
		direct = append(direct, h.Name, h.Address)
	}
	if cfg.Domain != "" {
		direct = append(direct, "."+cfg.Domain)
	}
	var b strings.Builder
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		fmt.Fprintf(&b, "%s%s=%s\n", prefix, name, quote(cfg.ProxyURL))
	}
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		fmt.Fprintf(&b, "%s%s=%s\n", prefix, name, quote(strings.Join(direct, ",")))
	}
	return b.String()
}

// quote makes a word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
