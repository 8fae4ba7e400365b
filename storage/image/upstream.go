package image

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// wayOut reports by which proxy the host itself reaches a mirror: what its apt is told,
// and otherwise what its environment says. config are settings as `apt-config dump`
// prints them.
func wayOut(config string) func(*url.URL) (*url.URL, error) {
	told := map[string]string{}
	for line := range strings.Lines(config) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		told[name] = strings.Trim(value, `";`)
	}
	env := httpproxy.FromEnvironment().ProxyFunc()
	return func(to *url.URL) (*url.URL, error) {
		kind := "Acquire::" + to.Scheme
		for _, name := range []string{kind + "::Proxy::" + to.Hostname(), kind + "::Proxy", "Acquire::http::Proxy"} {
			switch via := told[name]; via {
			case "":
			case "DIRECT", "false":
				return nil, nil
			default:
				return url.Parse(via)
			}
		}
		for _, name := range []string{kind + "::Proxy-Auto-Detect", kind + "::ProxyAutoDetect"} {
			if via := detectProxy(told[name], to); via != "" {
				return url.Parse(via)
			}
		}
		return env(to)
	}
}

// detectProxy asks the program that the host's apt asks; "" for no proxy.
func detectProxy(program string, to *url.URL) string {
	if program == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, to.String())
	cmd.Env = os.Environ()
	out, err := cmd.Output()
	via := strings.TrimSpace(string(out))
	if err != nil || via == "DIRECT" {
		return ""
	}
	return via
}

// withoutProxies takes the settings of proxies out: within a build there is one way.
func withoutProxies(config string) string {
	var b strings.Builder
	for line := range strings.Lines(config) {
		if !strings.Contains(line, "Proxy") {
			b.WriteString(line)
		}
	}
	return b.String()
}
