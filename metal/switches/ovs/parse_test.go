package ovs

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster/metal/switches"
)

const desc = `OFPST_PORT_DESC reply (xid=0x2):
 1(m01-mgmt): addr:9a:d8:f2:f5:6d:55
     config:     PORT_DOWN
     state:      LINK_DOWN
     current:    10GB-FD COPPER
     speed: 10000 Mbps now, 0 Mbps max
 4(c): addr:72:94:99:07:97:ce
     config:     0
     state:      0
 LOCAL(br0): addr:86:74:9f:44:11:4c
     config:     PORT_DOWN
     state:      LINK_DOWN
`

const stats = `OFPST_PORT reply (xid=0x2): 2 ports
  port  1: rx pkts=3, bytes=180, drop=1, errs=0, frame=0, over=0, crc=0
           tx pkts=7, bytes=900, drop=?, errs=2, coll=0
  port LOCAL: rx pkts=0, bytes=0, drop=0, errs=0, frame=0, over=0, crc=0
           tx pkts=0, bytes=0, drop=0, errs=0, coll=0
`

const rows = `{"data":[["a",1,true,["map",[]]],["b",4094,true,["map",[["muster-isolated","true"],["muster-vlan","7"]]]],["br0",["set",[]],false,["map",[]]]],"headings":["name","tag","protected","external_ids"]}`

const fdb = ` port  VLAN  MAC                Age
    1    20  02:00:00:00:77:01    3
LOCAL     0  02:00:00:00:77:02  static
    9     1  02:00:00:00:77:03    0
`

func TestParse(t *testing.T) {
	t.Parallel()
	links, err := parseLinks(desc)
	if err != nil || links["m01-mgmt"] != (link{"1", true, false, 10e9}) || links["c"] != (link{"4", false, true, 0}) || len(links) != 3 {
		t.Errorf("links %+v, %v", links, err)
	}
	for text, want := range map[string]int64{" 10 Mbps now, 0 Mbps max": 10e6, " 0 Mbps now, 0 Mbps max": 0, " -1 Mbps now": 0, " fast": 0, " 99999999 Mbps now": 0} {
		if got := parseSpeed(text); got != want {
			t.Errorf("speed %q is %d", text, got)
		}
	}
	counters, err := parseCounters(stats)
	if err != nil || counters["1"] != [2]switches.Counter{{Bytes: 180, Frames: 3, Dropped: 1}, {Bytes: 900, Frames: 7, Errors: 2}} {
		t.Errorf("counters %+v, %v", counters, err)
	}
	table, err := parseRows([]byte(rows))
	if err != nil || len(table) != 3 {
		t.Fatalf("rows %+v, %v", table, err)
	}
	if w := table[0].want(); w != (switches.Want{Port: "a", VLAN: 1, Isolated: true}) {
		t.Errorf("a is %v", w)
	}
	if w := table[1].want(); w != (switches.Want{Port: "b", VLAN: 7, Isolated: true, Closed: true}) {
		t.Errorf("b is %v", w)
	}
	list, err := parseAddresses(fdb, map[string]string{"1": "x", "LOCAL": "br0"})
	if err != nil || len(list) != 2 || list[0].Port != "x" || list[0].VLAN != 20 || list[0].Age != 3*time.Second {
		t.Errorf("addresses %+v, %v", list, err)
	}
	for text, want := range map[string]string{"Flow: x\nDatapath actions: drop\n": "drop", "Datapath actions: 1\n\nDatapath actions: push_vlan(vid=1),2\n": "push_vlan(vid=1),2"} {
		if got, ok := parseTrace(text); !ok || got != want {
			t.Errorf("trace %q: %q", text, got)
		}
	}
	if _, ok := parseTrace("no such bridge"); ok {
		t.Error("an answer without actions has some")
	}
}

// Whatever the programs print, reading it ends, and a closed port never counts as
// open because of it.
func FuzzParse(f *testing.F) {
	for _, s := range []string{desc, stats, rows, fdb, "Datapath actions: drop"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		links, _ := parseLinks(text)
		for name, l := range links {
			if l.number == "" {
				t.Errorf("port %q has no number", name)
			}
			if l.speed < 0 || l.speed > 1e13 {
				t.Errorf("port %q carries %d bits/s", name, l.speed)
			}
		}
		_, _ = parseCounters(text)
		_, _ = parseAddresses(text, map[string]string{"1": "a"})
		_, _ = parseTrace(text)
		table, _ := parseRows([]byte(text))
		for _, r := range table {
			if w := r.want(); w.Closed != (r.tag == closedVLAN) {
				t.Errorf("%+v is %v", r, w)
			}
		}
	})
}
