package ovs

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster/metal/switches"
)

// row is a port in the database.
type row struct {
	name      string
	tag       int // 0: none
	protected bool
	ids       map[string]string
}

// want is what a row asks of the switch.
func (r row) want() switches.Want {
	w := switches.Want{Port: r.name, VLAN: r.tag, Isolated: r.protected}
	if r.tag == closedVLAN {
		w.Closed = true
		w.VLAN, _ = strconv.Atoi(r.ids[keptVLAN])
		w.Isolated = r.ids[keptIsolated] == "true"
	}
	return w
}

func rowNames(rows []row) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.name
	}
	return out
}

// parseRows reads a table of ovs-vsctl --format=json with the columns name, tag,
// protected, external_ids.
func parseRows(b []byte) ([]row, error) {
	var table struct {
		Headings []string            `json:"headings"`
		Data     [][]json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(b, &table); err != nil {
		return nil, fmt.Errorf("ports of the switch: %w", err)
	}
	if strings.Join(table.Headings, " ") != "name tag protected external_ids" {
		return nil, fmt.Errorf("ports of the switch: columns %q", table.Headings)
	}
	var out []row
	for _, cells := range table.Data {
		if len(cells) != len(table.Headings) {
			return nil, fmt.Errorf("ports of the switch: a line of %d cells", len(cells))
		}
		r := row{ids: map[string]string{}}
		if err := json.Unmarshal(cells[0], &r.name); err != nil {
			return nil, fmt.Errorf("name of a port: %w", err)
		}
		// A number, or an empty set where there is none.
		if err := json.Unmarshal(cells[1], &r.tag); err != nil {
			r.tag = 0
		}
		if err := json.Unmarshal(cells[2], &r.protected); err != nil {
			return nil, fmt.Errorf("port %q: protected: %w", r.name, err)
		}
		var ids []json.RawMessage
		var pairs [][2]string
		if json.Unmarshal(cells[3], &ids) == nil && len(ids) == 2 {
			_ = json.Unmarshal(ids[1], &pairs) // a port that others made may hold anything
		}
		for _, p := range pairs {
			r.ids[p[0]] = p[1]
		}
		out = append(out, r)
	}
	return out, nil
}

// link is how the switch itself has a port.
type link struct {
	number string // in the switch's tables
	down   bool   // switched off
	link   bool   // something is there
	speed  int64  // bits/s; 0: nobody knows
}

// parseLinks reads ovs-ofctl dump-ports-desc, by name.
func parseLinks(text string) (map[string]link, error) {
	out := map[string]link{}
	name := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if number, rest, ok := strings.Cut(line, "("); ok && isNumber(number) {
			if n, after, ok := strings.Cut(rest, "): addr:"); ok && after != "" {
				name = n
				out[name] = link{number: number, link: true}
				continue
			}
		}
		field, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			continue
		}
		l := out[name]
		switch field {
		case "config":
			l.down = strings.Contains(value, "PORT_DOWN")
		case "state":
			l.link = !strings.Contains(value, "LINK_DOWN")
		case "speed":
			l.speed = parseSpeed(value)
		}
		out[name] = l
	}
	if len(out) == 0 && !strings.Contains(text, "OFPST_PORT_DESC") {
		return nil, fmt.Errorf("the switch's ports cannot be read: %.80q", text)
	}
	return out, nil
}

// parseSpeed reads "10000 Mbps now, 0 Mbps max": bits/s, 0 when that is not what it
// says.
func parseSpeed(text string) int64 {
	const most = 10_000_000 // Mb/s: no link is as fast
	now, _, ok := strings.Cut(text, " Mbps now")
	n, err := strconv.ParseInt(strings.TrimSpace(now), 10, 64)
	if !ok || err != nil || n < 0 || n > most {
		return 0
	}
	return n * 1e6
}

func isNumber(s string) bool {
	if s == "LOCAL" {
		return true
	}
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

// parseCounters reads ovs-ofctl dump-ports --no-names: what came in and what went
// out, by number.
func parseCounters(text string) (map[string][2]switches.Counter, error) {
	out := map[string][2]switches.Counter{}
	number := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "port"); ok {
			n, counters, ok := strings.Cut(rest, ": rx ")
			if !ok {
				continue
			}
			number = strings.TrimSpace(n)
			in, err := parseCounter(counters)
			if err != nil {
				return nil, fmt.Errorf("counters of port %s: %w", number, err)
			}
			out[number] = [2]switches.Counter{in}
			continue
		}
		if counters, ok := strings.CutPrefix(line, "tx "); ok && number != "" {
			o, err := parseCounter(counters)
			if err != nil {
				return nil, fmt.Errorf("counters of port %s: %w", number, err)
			}
			out[number] = [2]switches.Counter{out[number][0], o}
		}
	}
	return out, nil
}

// parseCounter reads "pkts=1, bytes=2, drop=?, errs=0, ...".
func parseCounter(text string) (switches.Counter, error) {
	var c switches.Counter
	fields := map[string]*uint64{"pkts": &c.Frames, "bytes": &c.Bytes, "drop": &c.Dropped, "errs": &c.Errors}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		to := fields[name]
		if !ok || to == nil || value == "?" {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return c, err
		}
		*to = n
	}
	return c, nil
}

// parseAddresses reads ovs-appctl fdb/show. names are ports by number.
func parseAddresses(text string, names map[string]string) ([]switches.Address, error) {
	var out []switches.Address
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] == "port" {
			continue
		}
		mac, err := net.ParseMAC(f[2])
		vlan, err2 := strconv.Atoi(f[1])
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("the switch's addresses cannot be read: %.80q", line)
		}
		age, err := strconv.Atoi(f[3])
		if err != nil {
			age = 0 // "static"
		}
		name, ok := names[f[0]]
		if !ok {
			continue // a port that has gone meanwhile
		}
		out = append(out, switches.Address{MAC: mac, VLAN: vlan, Port: name, Age: time.Duration(age) * time.Second})
	}
	return out, nil
}

// parseTrace finds in the answer of ofproto/trace what becomes of the frame.
func parseTrace(text string) (actions string, ok bool) {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), "Datapath actions: "); found {
			actions, ok = strings.TrimSpace(rest), true
		}
	}
	return actions, ok
}
