package topology

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/internal/yamldoc"
	"go.yaml.in/yaml/v3"
)

// Formats of descriptions.
const (
	FormatMuster = "muster"        // Muster's own, in YAML
	FormatConf   = "topology.conf" // Slurm's
	FormatYAML   = "topology.yaml" // Slurm's, from 25.05 on
)

// Formats are all of them.
func Formats() []string { return []string{FormatMuster, FormatConf, FormatYAML} }

var slurmLine = regexp.MustCompile(`(?im)^[ \t]*(SwitchName|BlockName|BlockSizes)[ \t]*=`)

// Read reads a description, of whatever format it is. The error is EInvalid and lists
// everything that is wrong, each with its line.
func Read(data []byte) (muster.SiteTree, error) {
	f := &file{}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch {
	case len(data) > MaxBytes:
		f.Wrong(muster.ReasonTooLarge, "file", "", "name machines by ranges such as n[0001-0512]", "it is larger than %d KiB", MaxBytes>>10)
	case !utf8.Valid(data):
		f.Wrong(muster.ReasonBadSyntax, "file", "", "save the file as UTF-8", "it is not UTF-8 text")
	case slurmLine.Match(data):
		f.conf(string(data))
	default:
		f.yaml(data)
	}
	if len(f.entries) == 0 && len(f.Problems) == 0 {
		f.Wrong(muster.ReasonRequired, "file", "", "see muster topology import --help for an example", "there is nothing in it")
	}
	tree := f.finish()
	if len(f.Problems) == 0 {
		return tree, nil
	}
	list := spec.Distinct(f.Problems)
	if len(list) > maxProblems {
		more := len(list) - maxProblems
		list = append(list[:maxProblems:maxProblems], muster.Problem{Field: "...", Reason: muster.ReasonTooMany, Message: fmt.Sprintf("%d more problems", more)})
	}
	return muster.SiteTree{}, muster.Errorf(muster.EInvalid, "the topology has problems; the present one stays").Because(muster.ReasonHasProblems).Listing(list)
}

// yaml reads Muster's format, or Slurm's.
func (f *file) yaml(data []byte) {
	top := f.Parse(data, "see muster topology import --help for an example", "put everything into one document")
	switch {
	case top == nil:
	case top.Kind == yaml.SequenceNode:
		f.slurm = true
		f.slurmYAML(top)
	default:
		f.Fields(top, "", []string{"stands"}, func(_ string, v *yaml.Node) {
			if v.Kind != yaml.SequenceNode {
				f.Wrong(muster.ReasonWrongType, "stands", yamldoc.At(v), "begin each with a dash", "a list is expected")
				return
			}
			for i, n := range v.Content {
				if i > maxStands {
					return // finish says so
				}
				f.stand(fmt.Sprintf("stands[%d]", i), n)
			}
		})
	}
}

func (f *file) stand(path string, n *yaml.Node) {
	e := entry{field: path, line: fmt.Sprintf("line %d", n.Line)}
	before := len(f.Problems)
	f.Fields(n, path+".", []string{"name", "kind", "in", "uplink", "delay", "link", "machines"}, func(name string, v *yaml.Node) {
		field, at := path+"."+name, yamldoc.At(v)
		if name == "machines" && v.Kind == yaml.SequenceNode {
			var list []string
			for i, item := range v.Content {
				list = append(list, f.Text(fmt.Sprintf("%s[%d]", field, i), item))
			}
			e.Machines = strings.Join(list, ",")
			return
		}
		value := f.Text(field, v)
		switch name {
		case "name":
			e.Name = value
		case "kind":
			e.Kind = muster.StandKind(value)
			if !slices.Contains(muster.StandKinds(), e.Kind) {
				f.Bad(field, at, yamldoc.Meant(value, kindNames()), "%q is not a kind", yamldoc.Clip(value))
			}
		case "in":
			e.In = value
		case "uplink":
			e.Uplink, e.Cables = f.uplink(field, at, value)
		case "delay":
			d, err := duration.Parse(value)
			if err != nil || d < 0 || d > longestDelay {
				f.Wrong(muster.ReasonOutOfRange, field, at, "write a time from 0 to 1s, such as 1ms", "%q is not the delay of a link", yamldoc.Clip(value))
				return
			}
			e.Delay = muster.Duration(d)
		case "link":
			e.Link = f.rate(field, at, value)
		case "machines":
			e.Machines = value
		}
	})
	if len(f.Problems) == before || n.Kind == yaml.MappingNode {
		for _, r := range []struct{ name, value, hint string }{
			{"name", e.Name, "name it: name: leaf1"}, {"kind", string(e.Kind), "write kind: leaf, or datacentre, room, spine, chassis"},
		} {
			if r.value == "" {
				f.Wrong(muster.ReasonRequired, path+"."+r.name, e.line, r.hint, "the %s is missing", r.name)
			}
		}
		f.entries = append(f.entries, e)
	}
}

func kindNames() []string {
	var out []string
	for _, k := range muster.StandKinds() {
		out = append(out, string(k))
	}
	return out
}

// uplink reads "40Gb/s" or "4 x 10Gb/s". The number of one cable is 0.
func (f *file) uplink(field, at, text string) (total int64, cables int) {
	number, each, several := strings.Cut(text, "x")
	if !several {
		return f.rate(field, at, text), 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil || n < 1 || n > maxCables {
		f.Wrong(muster.ReasonOutOfRange, field, at, fmt.Sprintf("write 4 x 10Gb/s, with 1 to %d cables", maxCables), "%q is not a number of cables", yamldoc.Clip(strings.TrimSpace(number)))
		return 0, 0
	}
	rate := f.rate(field, at, each)
	if n == 1 {
		n = 0
	}
	return rate * int64(max(1, n)), n
}

// rate reads the rate of one cable. 0: something is wrong, which is told.
func (f *file) rate(field, at, text string) int64 {
	text = strings.TrimSpace(text)
	v, err := spec.ParseRate(text)
	if err != nil {
		f.Bad(field, at, "write 10Gb/s, or 4 x 10Gb/s", "%q is not a rate", yamldoc.Clip(text))
		return 0
	}
	switch {
	case v < slowest:
		f.Wrong(muster.ReasonOutOfRange, field, at, "write what it carries, 1Mb/s at least; leave it out where that is not known", "%q is too slow for a link", yamldoc.Clip(text))
		return 0
	case v >= fastest:
		f.Wrong(muster.ReasonOutOfRange, field, at, "no cable is that fast: write several, such as 8 x 400Gb/s", "%q is too fast for one cable", yamldoc.Clip(text))
		return 0
	}
	return v
}
