package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon"
	"github.com/muster-hpc/muster/internal/yamldoc"
)

// defaultConfig is read unless another file is named, if it is there.
const defaultConfig = "/etc/muster/muster.yaml"

// configFile is where a server's flags are written down.
type configFile struct {
	path  string
	print bool
}

func (f *configFile) add(set *pflag.FlagSet) {
	set.StringVar(&f.path, "config", "", "file with the server's flags (default "+defaultConfig+", if it is there)")
	set.BoolVar(&f.print, "print-config", false, "print the configuration in this format and exit")
}

// ownFlags are those that a file cannot have.
func ownFlags() []string { return []string{"config", "print-config", "help"} }

// setting is a flag's name in a file.
func setting(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// read sets what the command line did not give.
func (f *configFile) read(set *pflag.FlagSet) error {
	path := f.path
	if path == "" {
		path = defaultConfig
	}
	data, err := os.ReadFile(path)
	switch {
	case f.path == "" && errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return muster.Errorf(muster.EInvalid, "the configuration %s cannot be read", path).Because(muster.ReasonFileUnreadable).WithHint("see whether it is there, and the server may read it").Wrap(err)
	}
	if problems := applyConfig(data, set); len(problems) > 0 {
		e := muster.Errorf(muster.EInvalid, "the configuration %s is wrong", path).Because(muster.ReasonHasProblems)
		return e.Listing(problems).WithHint("'muster serve --print-config' prints all fields")
	}
	return nil
}

// applyConfig sets the flags that a file gives, but those that are set already, and
// returns everything that is wrong.
func applyConfig(data []byte, set *pflag.FlagSet) []muster.Problem {
	var r yamldoc.Reader
	const see = "write one field a line, such as listen: 0.0.0.0:8443"
	top := r.Parse(data, see, "put it all into one document")
	if top == nil || top.Kind == yaml.ScalarNode && top.Tag == "!!null" { // all of it are comments
		return r.Problems
	}
	flags := map[string]*pflag.Flag{}
	var known []string
	set.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(ownFlags(), f.Name) {
			flags[setting(f.Name)] = f
			known = append(known, setting(f.Name))
		}
	})
	r.Fields(top, "", known, func(name string, v *yaml.Node) {
		flag := flags[name]
		var texts []string
		switch {
		case v.Kind == yaml.SequenceNode && isList(flag):
			for i, e := range v.Content {
				texts = append(texts, r.Text(fmt.Sprintf("%s[%d]", name, i), e))
			}
		case v.Kind == yaml.SequenceNode:
			r.Bad(name, yamldoc.At(v), "write one value", "it is not a list")
		default:
			if text := r.Text(name, v); text != "" || v.Kind == yaml.ScalarNode && v.Tag != "!!null" {
				texts = append(texts, text)
			}
		}
		if flag.Changed {
			return // the command line says it
		}
		for _, text := range texts {
			if err := set.Set(flag.Name, text); err != nil {
				r.Bad(name, yamldoc.At(v), wantedOf(flag), "%q is not a value for it", yamldoc.Clip(text))
				return
			}
		}
	})
	return r.Problems
}

func isList(f *pflag.Flag) bool {
	_, ok := f.Value.(pflag.SliceValue)
	return ok
}

// wantedOf says what a flag takes.
func wantedOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "write true or false"
	case "int":
		return "write a whole number"
	case "float64":
		return "write a number"
	case "duration":
		return "write it like 90s or 72h"
	}
	return f.Usage
}

// given is a flag with its values.
type given struct {
	name   string
	values []string
}

// givenFlags are those that the command line gave.
func givenFlags(set *pflag.FlagSet) []given {
	var list []given
	set.Visit(func(f *pflag.Flag) {
		g := given{name: f.Name, values: []string{f.Value.String()}}
		if l, ok := f.Value.(pflag.SliceValue); ok {
			g.values = l.GetSlice()
		}
		list = append(list, g)
	})
	return list
}

// readAgain is what the command line gave and the file says now.
func readAgain(file configFile, command []given) (*serveFlags, error) {
	var f serveFlags
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.add(set)
	for _, g := range command {
		if slices.Contains(ownFlags(), g.name) {
			continue
		}
		for _, v := range g.values {
			if err := set.Set(g.name, v); err != nil {
				return nil, err
			}
		}
	}
	return &f, file.read(set)
}

// onHangup reads the configuration with each hangup signal, until ctx ends. One that is
// wrong changes nothing.
func (f *configFile) onHangup(ctx context.Context, log *slog.Logger, read func() (daemon.Config, error)) <-chan daemon.Config {
	signals, out := make(chan os.Signal, 1), make(chan daemon.Config)
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
			}
			c, err := read()
			if err != nil {
				log.Error("configuration reload failed", "error", err)
				continue
			}
			select {
			case out <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// printConfig prints every flag as a field of a file, with what it is for: those that are
// set, and the others as comments with their defaults.
func printConfig(w io.Writer, set *pflag.FlagSet) error {
	var b strings.Builder
	b.WriteString("# Configuration of a Muster server: muster serve --config FILE\n")
	var failed error
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || slices.Contains(ownFlags(), f.Name) {
			return
		}
		var value any = f.Value.String()
		switch l, ok := f.Value.(pflag.SliceValue); {
		case ok:
			value = append([]string{}, l.GetSlice()...)
		case f.Value.Type() == "bool" || f.Value.Type() == "int" || f.Value.Type() == "float64":
			var n yaml.Node
			n.Kind, n.Value = yaml.ScalarNode, f.Value.String()
			value = &n
		}
		text, err := yaml.Marshal(map[string]any{setting(f.Name): value})
		if err != nil {
			failed = errors.Join(failed, err)
			return
		}
		b.WriteString("\n")
		for _, line := range wrap(f.Usage, 78) {
			b.WriteString("# " + line + "\n")
		}
		for line := range strings.Lines(string(text)) {
			if !f.Changed {
				b.WriteString("#")
			}
			b.WriteString(line)
		}
	})
	if failed == nil {
		_, failed = io.WriteString(w, b.String())
	}
	return failed
}

// wrap breaks a text into lines of so many bytes, at spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
