package sysinfo

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestOnlyNode(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]int{"0x00000001": 0, "0x00000004": 2, "0x00000001,0x0": 32, "0x80000000": 31, "0x00000003": -1, "0x1,0x1": -1, "": -1, "0x0": -1, "wild": -1, "0xf...f": -1} {
		got := onlyNode(set)
		if (got == nil) != (want < 0) || got != nil && *got != want {
			t.Errorf("%q: %v, not %d", set, got, want)
		}
	}
}

// The kernel lists the cards, and hwloc says where they are if the kernel does not.
func TestNetworkCards(t *testing.T) {
	t.Parallel()
	hwloc, err := os.ReadFile(filepath.Join("testdata", "hwloc", "io.xml"))
	if err != nil {
		t.Fatal(err)
	}
	card := func(name, node, speed string) map[string]string {
		at := "sys/class/net/" + name + "/"
		return map[string]string{at + "type": "1\n", at + "device/numa_node": node + "\n", at + "speed": speed + "\n"}
	}
	files := map[string]string{}
	for _, c := range []map[string]string{card("eno1", "-1", "25000"), card("eno2", "1", "1000")} {
		for k, v := range c {
			files[k] = v
		}
	}
	s := source(recorded(t, "server", files), 0, 1, 2, 3)
	s.Hwloc = func(context.Context) ([]byte, error) { return hwloc, nil }
	top := s.Topology(t.Context())
	if top == nil {
		t.Fatal("nothing")
	}
	got, _ := json.Marshal(top.NICs)
	const want = `[{"name":"eno1","node":0,"pci_address":"0000:01:00.0","speed_bps":25000000000},{"name":"eno2","node":1,"speed_bps":1000000000},` +
		`{"name":"eth9","pci_address":"0000:f1:00.0"},{"name":"ib0","node":1,"pci_address":"0000:81:00.0"}]`
	if string(got) != want {
		t.Errorf("\n%s\n%s", got, want)
	}
}
