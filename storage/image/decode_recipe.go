package image

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// recipe fills rec from the top mapping.
func (r *reader) recipe(n *yaml.Node, rec *Recipe) {
	mark := func(name string, f func(n *yaml.Node, path string)) func(*yaml.Node, string) {
		return func(n *yaml.Node, path string) { rec.set[name] = true; f(n, path) }
	}
	text := func(name string, to *string) func(*yaml.Node, string) {
		return mark(name, func(n *yaml.Node, p string) { *to = r.text(n, p) })
	}
	texts := func(to *[]string) func(*yaml.Node, string) {
		return func(n *yaml.Node, p string) { *to = r.texts(n, p) }
	}
	flag := func(name string, to *bool) func(*yaml.Node, string) {
		return mark(name, func(n *yaml.Node, p string) { *to = r.boolean(n, p) })
	}
	r.mapping(n, "", fields{
		"name":     text("name", &rec.Name),
		"summary":  text("summary", &rec.Summary),
		"extends":  text("extends", &rec.Extends),
		"abstract": flag("abstract", &rec.Abstract),
		"base":     func(n *yaml.Node, p string) { r.base(n, p, rec, mark) },
		"packages": texts(&rec.Packages),
		"accounts": func(n *yaml.Node, p string) {
			r.list(n, p, maxFiles, func(n *yaml.Node, p string) { rec.Accounts = append(rec.Accounts, r.account(n, p)) })
		},
		"files": func(n *yaml.Node, p string) {
			r.list(n, p, maxFiles, func(n *yaml.Node, p string) { rec.Files = append(rec.Files, r.file(n, p)) })
		},
		"commands": func(n *yaml.Node, p string) {
			r.list(n, p, maxCommands, func(n *yaml.Node, p string) { rec.Commands = append(rec.Commands, r.command(n, p)) })
		},
		"services": func(n *yaml.Node, p string) {
			r.mapping(n, p, fields{"keep": texts(&rec.Keep), "mask": texts(&rec.Mask)})
		},
		"exclude":         texts(&rec.Exclude),
		"trim":            texts(&rec.Trim),
		"namespace_masks": texts(&rec.NSMasks),
		"kernel":          mark("kernel", func(n *yaml.Node, p string) { rec.Kernel = r.kernel(n, p) }),
		"user_root":       flag("user_root", &rec.UserRoot),
		"scheduler":       text("scheduler", &rec.Scheduler),
		"requires":        func(n *yaml.Node, p string) { r.requires(n, p, rec, mark) },
		"agent": mark("agent", func(n *yaml.Node, p string) {
			r.mapping(n, p, fields{
				"min": func(n *yaml.Node, p string) { rec.Agent.Min = r.number(n, p) },
				"max": func(n *yaml.Node, p string) { rec.Agent.Max = r.number(n, p) },
			})
		}),
	})
}

// marker wraps a field's reader so that the field counts as named.
type marker func(string, func(*yaml.Node, string)) func(*yaml.Node, string)

func (r *reader) base(n *yaml.Node, path string, rec *Recipe, mark marker) {
	text := func(name string, to *string) func(*yaml.Node, string) {
		return mark(name, func(n *yaml.Node, p string) { *to = r.text(n, p) })
	}
	r.mapping(n, path, fields{
		"distribution":    text("base.distribution", &rec.Base.Distribution),
		"suite":           text("base.suite", &rec.Base.Suite),
		"mirror":          text("base.mirror", &rec.Base.Mirror),
		"security-mirror": text("base.security-mirror", &rec.Base.SecurityMirror),
		"components": mark("base.components", func(n *yaml.Node, p string) {
			rec.Base.Components = r.texts(n, p)
		}),
	})
}

func (r *reader) requires(n *yaml.Node, path string, rec *Recipe, mark marker) {
	q := &rec.Requires
	r.mapping(n, path, fields{
		"architecture": mark("requires.architecture", func(n *yaml.Node, p string) { q.Architecture = r.text(n, p) }),
		"cpu_level": mark("requires.cpu_level", func(n *yaml.Node, p string) {
			s := r.text(n, p)
			level, err := strconv.Atoi(strings.TrimPrefix(s, "x86-64-v"))
			if s != "" && (err != nil || level < 1 || level > 4 || !strings.HasPrefix(s, "x86-64-v")) {
				r.fail(n, p, "x86-64-v1, x86-64-v2, x86-64-v3 or x86-64-v4", "%q is not a CPU level", clip(s))
				return
			}
			q.CPULevel = level
		}),
		"memory": mark("requires.memory", func(n *yaml.Node, p string) {
			s := r.text(n, p)
			if s == "" {
				return
			}
			v, ok := parseSize(s)
			if !ok {
				r.fail(n, p, `for instance "512MiB" or "2GiB"`, "%q is not a size", clip(s))
				return
			}
			q.Memory = v
		}),
		"devices": func(n *yaml.Node, p string) { q.Devices = r.texts(n, p) },
	})
}

func (r *reader) account(n *yaml.Node, path string) Account {
	a := Account{UID: -1, GID: -1, Home: "/nonexistent", Shell: "/usr/sbin/nologin", Group: true}
	r.mapping(n, path, fields{
		"name":  func(n *yaml.Node, p string) { a.Name = r.text(n, p) },
		"uid":   func(n *yaml.Node, p string) { a.UID = r.number(n, p) },
		"gid":   func(n *yaml.Node, p string) { a.GID = r.number(n, p) },
		"home":  func(n *yaml.Node, p string) { a.Home = r.text(n, p) },
		"shell": func(n *yaml.Node, p string) { a.Shell = r.text(n, p) },
		"group": func(n *yaml.Node, p string) { a.Group = r.boolean(n, p) },
	})
	if a.GID < 0 {
		a.GID = a.UID
	}
	return a
}

func (r *reader) file(n *yaml.Node, path string) File {
	f := File{Mode: 0o644}
	r.mapping(n, path, fields{
		"path":    func(n *yaml.Node, p string) { f.Path = r.text(n, p) },
		"content": func(n *yaml.Node, p string) { f.Content = r.text(n, p) },
		"from":    func(n *yaml.Node, p string) { f.From = r.text(n, p) },
		"mirror":  func(n *yaml.Node, p string) { f.Mirror = r.text(n, p) },
		"sha256":  func(n *yaml.Node, p string) { f.SHA256 = r.text(n, p) },
		"early":   func(n *yaml.Node, p string) { f.Early = r.boolean(n, p) },
		"mode": func(n *yaml.Node, p string) {
			s := r.text(n, p)
			v, err := strconv.ParseUint(s, 8, 32)
			if s != "" && (err != nil || v > 0o7777) {
				r.fail(n, p, `for instance "0755"`, "%q is not an octal mode", clip(s))
				return
			}
			f.Mode = uint32(v)
		},
	})
	return f
}

func (r *reader) command(n *yaml.Node, path string) Command {
	var c Command
	r.mapping(n, path, fields{
		"name": func(n *yaml.Node, p string) { c.Name = r.text(n, p) },
		"run":  func(n *yaml.Node, p string) { c.Run = r.text(n, p) },
	})
	return c
}
