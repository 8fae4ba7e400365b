package dhcp

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// FuzzHandle gives any bytes to a server of each mode, as machine and as relay:
// it does not fall over, and what it answers another library can read, is for the
// one who asked, and never tells a forbidden machine anything.
func FuzzHandle(f *testing.F) {
	forbidden := mac(0xbad)
	for _, p := range []*dhcpv4.DHCPv4{
		discover(mac(1), pxe(7), opt(77, []byte("iPXE")...), opt(175, 0x13, 1, 1), opt(61, 1), opt(97, make([]byte, 17)...)),
		ask(mac(1), wants("10.1.0.10"), chose("10.1.0.1")), ask(mac(2), has("10.1.0.12")),
		discover(mac(3), relayed("10.2.0.254"), opt(82, 1, 1, 1, 5, 4, 10, 2, 0, 0)), discover(forbidden),
	} {
		f.Add(p.ToBytes(), false)
		f.Add(p.ToBytes(), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, proxy bool) {
		r := newRig(t, func(c *Config) {
			if proxy {
				c.Mode = Proxy
			}
		})
		r.book.verdicts[forbidden] = Verdict{Standing: Forbidden}
		r.book.verdicts[mac(1)] = Verdict{Standing: Known, Boot: "b1a2", Hostname: "n01"}
		for _, from := range []string{"0.0.0.0:68", "10.2.0.254:67", "10.1.0.10:4011"} {
			for _, port := range []int{67, ProxyPort} {
				out, ok := r.handle(b, netip.MustParseAddrPort(from), port, r.clock.Now())
				if !ok {
					continue
				}
				w := out.append(nil, r.Address)
				got, err := dhcpv4.FromBytes(w)
				if err != nil || len(w) < 300 || len(w) > maxReply && len(b) < 2048 {
					t.Fatalf("%d bytes, %v", len(w), err)
				}
				if !bytes.Equal(got.ClientHWAddr, b[28:34]) || !bytes.Equal(got.TransactionID[:], b[4:8]) {
					t.Fatal("answered somebody else")
				}
				if bytes.Equal(b[28:34], forbidden[:]) {
					t.Fatal("answered a forbidden machine")
				}
				if proxy && (!got.YourIPAddr.IsUnspecified() || got.MessageType() == dhcpv4.MessageTypeNak) {
					t.Fatal("a proxy gave or took an address")
				}
			}
		}
	})
}

func FuzzARP(f *testing.F) {
	f.Add([]byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 10, 1, 0, 10, 2, 0, 0, 0, 0, 2, 10, 1, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, a, ok := parseARP(b)
		if ok && (!m.Real() || !a.IsValid() || !bytes.Contains(b, m[:])) {
			t.Fatalf("%v, %v", m, a)
		}
	})
}

// FuzzLeaseFile: any file is taken or refused, and what is taken comes out again
// the same after it was written anew.
func FuzzLeaseFile(f *testing.F) {
	f.Add([]byte("10.0.0.1 02:00:00:00:00:01 2000000000\n10.0.0.2 02:00:00:00:00:02 0\n10.0.0.1 02:00:00:00:00:03 2000000001\n10.0."))
	f.Add([]byte("x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "leases")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := OpenLeaseFile(path)
		if err != nil {
			return
		}
		first, _ := file.Load()
		file.Close()
		file, err = OpenLeaseFile(path)
		if err != nil {
			t.Fatalf("cannot read what it wrote: %v", err)
		}
		defer file.Close()
		second, _ := file.Load()
		if len(first) != len(second) {
			t.Fatalf("%d leases became %d", len(first), len(second))
		}
		for i := range first {
			if first[i].Address != second[i].Address || first[i].MAC != second[i].MAC || !first[i].Until.Equal(second[i].Until) {
				t.Fatalf("%v became %v", first[i], second[i])
			}
		}
	})
}

func TestLeaseFileStaysSmall(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leases")
	f, err := OpenLeaseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	until := time.Unix(2_000_000_000, 0)
	for i := range 6_000 {
		if err := f.Put([]Lease{{mac(i % 10), address(0x0a000001 + uint32(i%10)), until.Add(time.Duration(i) * time.Second)}}); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			f.file.Sync()
		}
	}
	st, err := os.Stat(path)
	if err != nil || st.Size() > 5000*50 {
		t.Errorf("%d bytes for ten leases, %v", st.Size(), err)
	}
	if st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}
	if l, _ := f.Load(); len(l) != 10 || !l[0].Until.Equal(until.Add(5_990*time.Second)) {
		t.Errorf("%v", l)
	}
}

func TestLeaseFileThatIsNotOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leases")
	if err := os.WriteFile(path, []byte("10.0.0.1 02:00:00:00:00:01 2000000000\nrubbish\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLeaseFile(path); err == nil || !bytes.Contains([]byte(err.Error()), []byte("line 2")) {
		t.Errorf("%v", err)
	}
	if b, _ := os.ReadFile(path); !bytes.Contains(b, []byte("rubbish")) {
		t.Error("the file was changed")
	}
}
