package image

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// aptSettings are the host's own apt settings that must hold for building too:
// how to get out, and what to accept.
func aptSettings() []string {
	return []string{
		"Acquire::http::Proxy", "Acquire::https::Proxy",
		"Acquire::http::ProxyAutoDetect", "Acquire::http::Proxy-Auto-Detect",
		"Acquire::Check-Valid-Until", "Acquire::Check-Date", "Acquire::Retries",
		"Acquire::ForceIPv4", "Acquire::http::Timeout", "Acquire::https::CaInfo",
	}
}

// hostApt asks the host's apt for its settings and for its Debian mirror. Both
// are empty where apt does not answer.
func hostApt(ctx context.Context) (config, mirror string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "apt-config", "dump").Output(); err == nil {
		config = keepSettings(string(out), aptSettings())
	}
	// $(ORIGIN) is known once the host has fetched package lists.
	format := "$(ORIGIN) $(REPO_URI)"
	if out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", format, "Created-By: Packages").Output(); err == nil {
		mirror = debianMirror(string(out))
	}
	return config, mirror
}

// keepSettings picks settings from `apt-config dump`, whose lines are
// NAME "VALUE"; and which may name a host below the setting.
func keepSettings(dump string, wanted []string) string {
	var b strings.Builder
	for line := range strings.Lines(dump) {
		line = strings.TrimSpace(line)
		name, value, _ := strings.Cut(line, " ")
		for _, w := range wanted {
			if (name == w || strings.HasPrefix(name, w+"::")) && value != `"";` {
				b.WriteString(line + "\n")
			}
		}
	}
	return b.String()
}

// debianMirror picks the mirror of the Debian archive from lines "ORIGIN URL",
// not that of security updates.
func debianMirror(targets string) string {
	for line := range strings.Lines(targets) {
		origin, uri, _ := strings.Cut(strings.TrimSpace(line), " ")
		uri = strings.TrimSuffix(uri, "/")
		if origin == "Debian" && !strings.Contains(uri, "security") && checkMirror(uri) == "" {
			return uri
		}
	}
	return ""
}

// sources are the lines of sources.list for a base. Stable releases have
// updates and security updates beside them.
func sources(b Base, keyring string) []string {
	options := ""
	if keyring != "" {
		options = "[signed-by=" + keyring + "] "
	}
	components := strings.Join(b.Components, " ")
	line := func(mirror, suite string) string {
		return fmt.Sprintf("deb %s%s %s %s", options, mirror, suite, components)
	}
	out := []string{line(b.Mirror, b.Suite)}
	switch b.Suite {
	case "sid", "unstable", "experimental":
	default:
		out = append(out, line(b.Mirror, b.Suite+"-updates"), line(b.SecurityMirror, b.Suite+"-security"))
	}
	return out
}

// builderApt are the settings of apt while an image is built.
func builderApt(host string) string {
	return withoutProxies(host) +
		"APT::Install-Recommends \"false\";\n" + // an image holds what its recipe names
		"APT::Install-Suggests \"false\";\n" +
		"Acquire::Languages \"none\";\n" +
		"Acquire::Retries \"3\";\n" +
		"APT::Keep-Downloaded-Packages \"true\";\n" // for the store's cache
}

// builderDpkg are the settings of dpkg while an image is built. A build that
// the power fails in is thrown away: there is nothing to sync for.
func builderDpkg(rec *Recipe) string {
	return "force-unsafe-io\n" + dpkgExcludes(append(slices.Clone(rec.Trim), rec.Exclude...))
}

// dpkgExcludes makes dpkg leave out the paths of some patterns. Copyright files stay.
func dpkgExcludes(patterns []string) string {
	var b strings.Builder
	for _, p := range patterns {
		b.WriteString("path-exclude=" + p + "\n")
	}
	b.WriteString("path-include=" + copyrights + "\n")
	return b.String()
}

// copyrights are files that stay in every image: licences ask for it.
const copyrights = "/usr/share/doc/*/copyright"
