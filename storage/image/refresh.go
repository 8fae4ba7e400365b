package image

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	muster "github.com/muster-hpc/muster"
)

// current asks the mirror whether each package of an image is still the one
// that would be installed. Then building again would give the same image: what
// is installed follows from the recipe and the versions.
func (s *Store) current(ctx context.Context, rec *Recipe, m *muster.Image, o BuildOptions, track *stages) (bool, error) {
	track.enter("lists")
	lists := filepath.Join(s.dir, "cache", "lists-"+rec.Base.Suite+"-"+rec.Requires.Architecture)
	if err := os.MkdirAll(filepath.Join(lists, "partial"), 0o755); err != nil {
		return false, storeError("keep package lists", err)
	}
	unlock, err := s.lockContext(ctx, "lists-"+rec.Base.Suite, func() { track.enter("wait for another builder") })
	if err != nil {
		return false, err
	}
	defer unlock()
	work, err := s.newWorkspace("refresh")
	if err != nil {
		return false, err
	}
	defer func() { _ = work.close() }() // swept later if it must
	hostConfig, hostMirror := s.tools.apt(ctx)
	from := used(rec.Base, o.Mirror, hostMirror)
	config := withoutProxies(hostConfig) + fmt.Sprintf(`APT::Architecture %q;
APT::Architectures { %q; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::State::Lists %q;
Dir::State::status "/dev/null";
Dir::Cache %q;
Dir::Etc::SourceList %q;
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
`, rec.Requires.Architecture, rec.Requires.Architecture, lists, work.dir, work.path("sources.list"))
	lines := sources(from, keyring(keyrings()))
	for name, content := range map[string]string{"apt.conf": config, "sources.list": strings.Join(lines, "\n") + "\n"} {
		if err := os.WriteFile(work.path(name), []byte(content), 0o600); err != nil {
			return false, storeError("ask for newer packages", err)
		}
	}
	env := []string{"APT_CONFIG=" + work.path("apt.conf")}
	if err := s.run(ctx, job{argv: []string{s.tools.aptGet, "-q", "update"}, env: env, log: io.Discard, mirrors: newMirrorProxy(lines, wayOut(hostConfig))}); err != nil {
		return false, err
	}
	argv := []string{s.tools.aptCache, "policy"}
	for _, p := range m.Packages {
		argv = append(argv, p.Name)
	}
	var policy policy
	if err := s.run(ctx, job{argv: argv, env: env, onLine: policy.line}); err != nil {
		return false, err
	}
	for _, p := range m.Packages {
		if policy.candidates[p.Name] != p.Version {
			s.log.Info("image package outdated", "image", m.Name, "package", p.Name, "has", p.Version, "is", policy.candidates[p.Name])
			return false, nil
		}
	}
	return true, nil
}

// policy understands the output of `apt-cache policy`.
type policy struct {
	name       string
	candidates map[string]string
}

func (p *policy) line(line string) {
	if p.candidates == nil {
		p.candidates = map[string]string{}
	}
	if name, ok := strings.CutSuffix(line, ":"); ok && !strings.HasPrefix(line, " ") {
		p.name = name
		return
	}
	if v, ok := strings.CutPrefix(line, "  Candidate: "); ok {
		p.candidates[p.name] = v
	}
}

// used is where packages come from: what the builder is told, or the host's own
// mirror in place of Debian's default, or what the recipe says.
func used(b Base, told, host string) Base {
	switch {
	case told != "":
		b.Mirror = told
	case host != "" && b.Mirror == defaultMirror():
		b.Mirror = host
	}
	return b
}
