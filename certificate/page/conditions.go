package page

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/muster-hpc/muster"
)

// condition is one line of the table of conditions.
type condition struct {
	Name   string
	Values []conditionValue // one, unless nodes differ
	Host   bool             // of the whole host, of which the machine is a slice
}

type conditionValue struct {
	Text  string
	Nodes string // which nodes; none: all
}

// mostVariants of one condition are told.
const mostVariants = 6

// conditions are those of all nodes, or those that the manifest has in common.
func conditions(c muster.Certificate, nodes []muster.Certificate) []condition {
	if len(nodes) == 0 {
		nodes = []muster.Certificate{c}
	}
	var out []condition
	t := reflect.TypeFor[muster.TestEnvironment]()
	for i := range t.NumField() {
		tag := muster.ConditionName(t.Field(i))
		if tag == "differ" || tag == "host" || tag == "topology" || tag == "numa" || tag == "vm_settings" {
			continue // said elsewhere
		}
		one := condition{Name: conditionName(tag)}
		var order []string
		who := map[string][]string{}
		for _, n := range nodes {
			for _, h := range hostwide(n.Conditions) {
				one.Host = one.Host || h == tag
			}
			text := conditionText(tag, reflect.ValueOf(n.Conditions).Field(i))
			if _, ok := who[text]; !ok {
				order = append(order, text)
			}
			who[text] = append(who[text], n.Node)
		}
		if len(order) == 1 && order[0] == "" {
			continue
		}
		for k, text := range order {
			v := conditionValue{Text: text}
			if len(order) > 1 {
				v.Nodes = folded(who[text])
			}
			if text == "" {
				v.Text = "not known"
			}
			if k == mostVariants {
				v = conditionValue{Text: "and " + count(len(order)-k, "other", "others")}
			}
			one.Values = append(one.Values, v)
			if k == mostVariants {
				break
			}
		}
		out = append(out, one)
	}
	return out
}

// hostwide names the conditions that are those of the whole host.
func hostwide(c muster.TestEnvironment) []string {
	f := reflect.ValueOf(c).FieldByName("Host")
	if !f.IsValid() {
		return nil
	}
	list, _ := f.Interface().([]string)
	return list
}

func conditionName(tag string) string {
	known := map[string]string{
		"provider": "Machines are", "processor": "Processor", "sockets": "Sockets", "cores": "Cores", "threads": "Hardware threads", "memory": "Memory",
		"shape": "Part of the machine", "link_rate_bps": "Links held to",
		"cache": "Last-level cache", "clock": "Clock", "huge_pages": "Large pages", "virtualization": "Runs in", "hypervisor": "Hypervisor", "vm": "Virtual machine", "steal": "Time that its processors waited for one of the host's (steal)",
		"flags": "Processor's flags", "kernel": "Kernel", "kernel_options": "Kernel's command line", "clock_source": "Time is taken from", "firmware": "Firmware", "microcode": "Microcode",
		"smt": "Threads of a core (SMT)", "mtu": "Largest packets (MTU)", "image": "Image", "blas": "Linear algebra", "mpi": "MPI", "transport": "Messages were carried by",
		"pinning": "Processors of each rank", "neighbours": "Neighbours on the host", "shared": "Shared with others", "oversubscribed": "Oversubscribed", "probe": "Measured by",
		"scratch": "Scratch of the node", "tools": "Measured by, too",
	}
	if name := known[tag]; name != "" {
		return name
	}
	name := strings.ReplaceAll(tag, "_", " ")
	if name == "" {
		return name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// conditionText is a condition for people; nothing if it is not known.
func conditionText(tag string, v reflect.Value) string {
	if v.IsZero() {
		return ""
	}
	switch x := v.Interface().(type) {
	case *muster.ProcessorClock:
		return clockText(*x)
	case *muster.VMCondition:
		return x.String()
	case *float64:
		return fmt.Sprintf("%.2g %%", *x*100)
	case *muster.Shape:
		return x.String()
	case *muster.HugePages:
		text := x.Transparent
		if text != "" {
			text = "transparent: " + text
		}
		if x.Reserved > 0 {
			text += fmt.Sprintf("; %d of %s reserved", x.Reserved, size(x.Size))
		}
		return strings.TrimPrefix(text, "; ")
	case *muster.Library:
		return join("; ", x.File, x.Config)
	case *muster.Probe:
		return join("; ", x.Compiler, x.Flags, prefix("source ", x.Source))
	case *muster.Scratch:
		medium, cached := "", ""
		if x.Memory {
			medium = "in memory"
		}
		if !x.Direct {
			cached = "through the page cache"
		}
		return join(", ", x.Path, x.Type, medium, cached)
	case *int:
		return fmt.Sprint(*x)
	case []string:
		if tag == "tools" || tag == "mtu" {
			return strings.Join(x, ", ")
		}
		return strings.Join(x, " ")
	case bool:
		return "yes"
	case int64:
		switch tag {
		case "memory", "cache":
			return size(x)
		case "link_rate_bps":
			return fmt.Sprintf("%g Mb/s", float64(x)/1e6)
		}
	}
	if tag == "virtualization" && v.String() == "none" {
		return "nothing: the bare machine"
	}
	switch v.Kind() {
	case reflect.String, reflect.Int, reflect.Int64, reflect.Float64:
		return fmt.Sprint(v.Interface())
	}
	return "" // what only programs can read
}

func clockText(c muster.ProcessorClock) string {
	var list []string
	if c.Base > 0 {
		list = append(list, hertz(c.Base)+" nominal")
	}
	if c.Min > 0 || c.Max > 0 {
		list = append(list, hertz(c.Min)+" to "+hertz(c.Max))
	}
	if c.Boost != nil {
		list = append(list, map[bool]string{true: "may run faster than nominal", false: "never faster than nominal"}[*c.Boost])
	}
	list = append(list, prefix("governor ", c.Governor), prefix("driver ", c.Driver))
	return join("; ", list...)
}

func prefix(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// join leaves out what is empty.
func join(between string, list ...string) string {
	var some []string
	for _, s := range list {
		if s != "" {
			some = append(some, s)
		}
	}
	return strings.Join(some, between)
}
