package netbench

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// captured reads what iperf3 really printed.
func captured(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(b) }

// What the iperf3 of either Debian prints is read, in both directions. What is wanted
// was calculated apart from the program.
func TestReadTCP(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]tcp{
		"tcp-3.12.json":         {rate: 1995079523.706154, low: 923932392.2606367, high: 2538988404.2601876, parts: 5, seconds: 1.004254, again: 0.0001144538914323087},
		"tcp-3.18.json":         {rate: 1515503318.0805442, low: 1400207188.1652286, high: 1670839559.040039, parts: 5, seconds: 1.001784, again: 0.00019425019425019425},
		"tcp-reverse-3.12.json": {rate: 2342668010.301198, low: 1689730723.0307255, high: 2929675636.511854, parts: 5, seconds: 1.000272, again: 8.379888268156425e-05},
		"tcp-streams-3.12.json": {rate: 1153664902.6916013, low: 615386630.8427515, high: 2274954097.7606335, parts: 5, seconds: 1.012297, again: 5.611672278338945e-05},
		"tcp-reverse-3.18.json": {rate: 1235793007.988215, low: 833549253.5283773, high: 1555779882.9771686, parts: 5, seconds: 1.000599, again: 0.00031622219879835566},
	} {
		got, err := readTCP(captured(t, name))
		if err != nil || !near(got.rate, want.rate) || !near(got.low, want.low) || !near(got.high, want.high) || got.parts != want.parts ||
			!near(got.seconds, want.seconds) || math.Abs(got.again-want.again) > 1e-12 {
			t.Errorf("%s: %+v, not %+v: %v", name, got, want, err)
		}
	}
}

func TestReadUDP(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]udp{
		"udp-3.12.json":         {rate: 88724850.40261275, seconds: 1.003694, jitter: 3.4346648678806644e-06, loss: 0.28168441498311747, packets: 88553},
		"udp-3.18.json":         {rate: 72608200.11929695, seconds: 1.003439, jitter: 1.1145204600735207e-06, loss: 0.35694250515884296, packets: 80929},
		"udp-reverse-3.12.json": {rate: 75558923.98633787, seconds: 1.000136, jitter: 3.2886760328793124e-06, loss: 0.3953196590005265, packets: 89267},
		"udp-reverse-3.18.json": {rate: 70273594.01516668, seconds: 1.000277, jitter: 3.6111842346246407e-06, loss: 0.32842907777703473, packets: 74765},
	} {
		got, err := readUDP(captured(t, name))
		if err != nil || !near(got.rate, want.rate) || !near(got.seconds, want.seconds) || !near(got.jitter, want.jitter) || !near(got.loss, want.loss) || got.packets != want.packets {
			t.Errorf("%s: %+v, not %+v: %v", name, got, want, err)
		}
	}
}

// What is no report, or not of what was asked for, becomes no figure.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"refused-3.12.json", "refused-3.18.json"} {
		if _, err := readTCP(captured(t, name)); err == nil || !strings.Contains(err.Error(), "unable to connect") {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := string(captured(t, "udp-3.18.json"))
	for name, out := range map[string]string{
		"nothing":    "",
		"cut off":    good[:len(good)/2],
		"TCP":        string(captured(t, "tcp-3.18.json")),
		"no packets": strings.ReplaceAll(good, `"packets":	`, `"packets":	-`),
		"no end":     `{"end":{}}`,
		"null":       `null`,
	} {
		if u, err := readUDP([]byte(out)); err == nil {
			t.Errorf("%s: %+v", name, u)
		}
	}
	if v, err := readTCP([]byte(`{"end":{"sum_sent":{"bytes":1},"sum_received":{"bits_per_second":8,"seconds":1}}}`)); err != nil || v.again >= 0 {
		t.Errorf("how much was sent again is not known: %+v, %v", v, err)
	}
}

// Whatever iperf3 prints, what is read makes sense.
func FuzzReport(f *testing.F) {
	list, err := filepath.Glob("testdata/*.json")
	if err != nil || len(list) < 10 {
		f.Fatal(list, err)
	}
	for _, path := range list {
		f.Add(captured(f, filepath.Base(path)))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		if v, err := readTCP(out); err == nil && (!(v.low > 0) || v.low > v.rate || v.rate > v.high || !believable(v.high) || v.parts < 1 || !(v.seconds > 0) || v.again > 1) {
			t.Errorf("%+v", v)
		}
		if v, err := readUDP(out); err == nil && (!(v.rate >= 0) || math.IsInf(v.rate, 0) || !(v.loss >= 0 && v.loss <= 1) || !(v.jitter >= 0) || v.packets < 1 || !(v.seconds > 0)) {
			t.Errorf("%+v", v)
		}
	})
}

func TestParseRounds(t *testing.T) {
	t.Parallel()
	rounds, err := parseRounds("0-1 3-2/1-3", 4)
	if err != nil || len(rounds) != 2 || rounds[0][1] != (pair{3, 2}) || rounds[1][0] != (pair{1, 3}) {
		t.Errorf("%v, %v", rounds, err)
	}
	for _, bad := range []string{"", "/", "0-1/", "0-0", "0", "0-4", "-1-2", "a-b", "0-1 1-2", "0-1-2"} {
		if rounds, err := parseRounds(bad, 4); err == nil {
			t.Errorf("%q: %v", bad, rounds)
		}
	}
}

func FuzzParseRounds(f *testing.F) {
	f.Add("0-1 3-2/1-3", 4)
	f.Fuzz(func(t *testing.T, text string, n int) {
		rounds, err := parseRounds(text, n)
		for _, round := range rounds {
			busy := map[int]bool{}
			for _, p := range round {
				if p.a < 0 || p.b < 0 || p.a >= n || p.b >= n || busy[p.a] || busy[p.b] || p.a == p.b {
					t.Errorf("%q: %v, %v", text, rounds, err)
				}
				busy[p.a], busy[p.b] = true, true
			}
		}
	})
}
