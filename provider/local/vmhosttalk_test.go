package local_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local"
)

// consoleLines are what a machine has printed.
type consoleLines struct {
	mu   sync.Mutex
	list []string
}

func (c *consoleLines) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list)
}

func (c *consoleLines) has(line string) bool { return slices.Contains(c.all(), line) }

func readConsole(t *testing.T, p *local.Provider, id muster.MachineID) *consoleLines {
	t.Helper()
	in, err := p.Console(t.Context(), id, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	c := &consoleLines{}
	go func() {
		buf, rest := make([]byte, 4096), ""
		for {
			n, err := in.Read(buf)
			rest += string(buf[:n])
			for {
				line, after, ok := strings.Cut(rest, "\n")
				if !ok {
					break
				}
				rest = after
				c.mu.Lock()
				c.list = append(c.list, strings.TrimSpace(line))
				c.mu.Unlock()
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

// rounds is how often each guest has sent when it is looked at what others heard.
const rounds = 20

// talk waits until the first two have heard each other and had answers, and the third has sent as often. Then nobody has heard
// anything of the other cluster.
func talk(t *testing.T, lines map[muster.MachineID]*consoleLines) {
	t.Helper()
	want := map[muster.MachineID][]string{
		"local-02": {"heard local-03 plain", "heard local-03 answer", fmt.Sprint("sent ", rounds)},
		"local-03": {"heard local-02 plain", "heard local-02 answer", fmt.Sprint("sent ", rounds)},
		"local-04": {fmt.Sprint("sent ", rounds)},
	}
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Second) {
		missing := ""
		for id, list := range want {
			for _, line := range list {
				if !lines[id].has(line) {
					missing = fmt.Sprintf("%s has not said %q", id, line)
				}
			}
		}
		if missing == "" {
			break
		}
		if time.Now().After(end) {
			for id, l := range lines {
				t.Logf("%s:\n%s", id, strings.Join(l.all(), "\n"))
			}
			t.Fatal(missing)
		}
	}
	for id, l := range lines {
		for _, line := range l.all() {
			from, kind, _ := strings.Cut(strings.TrimPrefix(line, "heard "), " ")
			if strings.HasPrefix(line, "heard ") && (from == "local-04") != (id == "local-04") {
				t.Errorf("%s has heard %s of another VLAN: %s", id, from, kind)
			}
			if strings.HasPrefix(line, "card ") || strings.HasPrefix(line, "heard ") {
				t.Logf("%s: %s", id, line)
			}
		}
	}
}

// usesDisk waits until the guest with the NVMe has used it.
func usesDisk(t *testing.T, lines map[muster.MachineID]*consoleLines) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second) {
		for id, l := range lines {
			for _, line := range l.all() {
				if !strings.HasPrefix(line, "disk: ") {
					continue
				}
				t.Logf("%s: %s", id, line)
				if id != "local-03" || line != "disk: it was empty, and was written and read, 16777216 bytes" {
					t.Errorf("%s: %s", id, line)
				}
				return
			}
		}
		if time.Now().After(end) {
			t.Fatal("no guest has used the NVMe")
		}
	}
}

// tagged reads what passed on the wire of the card: every frame of a virtual machine bears the tag of its
// cluster's VLAN outside, whatever the guest sent.
func tagged(t *testing.T, pcap string) {
	t.Helper()
	b, err := os.ReadFile(pcap)
	if err != nil {
		t.Error(err)
		return
	}
	count := map[string]int{}
	for b = b[min(24, len(b)):]; len(b) >= 16; {
		n := int(binary.LittleEndian.Uint32(b[8:]))
		if b = b[16:]; n > len(b) {
			break
		}
		frame := b[:n]
		b = b[n:]
		if n < 18 || frame[6] != 0x52 || frame[7] == 0x54 { // of the card itself
			continue
		}
		vlan := 0
		if binary.BigEndian.Uint16(frame[12:]) == 0x8100 {
			vlan = int(binary.BigEndian.Uint16(frame[14:]) & 0xfff)
		}
		text := string(frame[14:])
		for i, name := range []string{"local-02", "local-03", "local-04"} {
			if !strings.Contains(text, name+" ") {
				continue
			}
			count[fmt.Sprint(name, " in VLAN ", vlan)]++
			if want := 100 + i/2; vlan != want {
				t.Errorf("a frame of %s is on the wire in VLAN %d: %x", name, vlan, frame)
			}
		}
	}
	t.Logf("frames on the wire: %v", count)
	if len(count) == 0 {
		t.Error("nothing is on the wire")
	}
}
