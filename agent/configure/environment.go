package configure

import (
	"fmt"
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
		{Path: "/etc/profile.d/muster.sh", Content: profile(cfg)},
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
	if len(cfg.Time) > 0 {
		list = append(list, wire.File{Path: "/etc/systemd/timesyncd.conf.d/muster.conf", Content: "[Time]\nNTP=" + strings.Join(cfg.Time, " ") + "\n"})
	}
	if err := c.plainFiles(list, nil); err != nil {
		return err
	}
	return c.files.block("/etc/environment", proxyLines(cfg, ""))
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
func profile(cfg *wire.NodeConfig) string {
	var b strings.Builder
	b.WriteString("# Written by Muster. Changes here do not last.\n")
	fmt.Fprintf(&b, "export MUSTER_CLUSTER=%s MUSTER_CLUSTER_ID=%s MUSTER_NODE=%s\n", quote(cfg.ClusterName), quote(string(cfg.Cluster)), quote(cfg.Node))
	if cfg.UserRoot {
		// Open MPI asks not to be run by root; here that is what users are.
		b.WriteString("export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n")
	}
	b.WriteString(proxyLines(cfg, "export "))
	return b.String()
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
