package redfish

import (
	"context"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/bmc"
)

const password = "c0rrect-h0rse"

func secret(context.Context) ([]byte, error) { return []byte(password), nil }

// served makes a driver for a controller that h pretends to be.
func served(t testing.TB, h http.HandlerFunc) power.Driver {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return driverOf(t, s.Listener.Addr().(*net.TCPAddr).Port, func(a *muster.PowerAddress) {
		a.CertificateSHA256 = fmt.Sprintf("%x", sha256.Sum256(s.Certificate().Raw))
	})
}

func driverOf(t testing.TB, port int, change func(*muster.PowerAddress)) power.Driver {
	t.Helper()
	a := muster.PowerAddress{Kind: muster.PowerRedfish, Address: fmt.Sprintf("127.0.0.1:%d", port), User: "admin"}
	change(&a)
	d, err := power.Drivers{muster.PowerRedfish: Maker()}.Open(power.Target{Machine: "m1", Address: a, Secret: secret}, power.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d
}

// TestPin: a controller with another certificate gets nothing of us, and the
// operator is told which it has.
func TestPin(t *testing.T) {
	t.Parallel()
	b, err := bmc.Start(bmc.Config{Chassis: &bmc.Pretended{}, User: "admin", Password: password, Redfish: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cert, err := b.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%x", sha256.Sum256(cert.Raw))
	d := driverOf(t, b.Redfish(), func(a *muster.PowerAddress) { a.CertificateSHA256 = strings.Repeat("00", 32) })
	_, err = d.State(t.Context())
	var e *muster.Error
	if muster.CodeOf(err) != muster.EUnauth {
		t.Errorf("got %v", err)
	} else if e, _ = err.(*muster.Error); !strings.Contains(e.Hint, shown) { //nolint:errorlint // made here
		t.Errorf("the hint does not name the certificate: %q", e.Hint)
	}
	if b.Sessions()+b.Refused() != 0 {
		t.Error("somebody was spoken to whose certificate is wrong")
	}
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
	if _, err := driverOf(t, b.Redfish(), func(a *muster.PowerAddress) { a.Authority = authority }).State(t.Context()); err != nil {
		t.Errorf("by its authority: %v", err)
	}
	other, err := bmc.SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	authority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate[0]}))
	if _, err := driverOf(t, b.Redfish(), func(a *muster.PowerAddress) { a.Authority = authority }).State(t.Context()); muster.CodeOf(err) != muster.EUnauth {
		t.Errorf("by another authority: %v", err)
	}
}

// TestTokenStaysHere: a controller that points elsewhere does not have the
// session's token sent there.
func TestTokenStaysHere(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for name, at := range map[string]string{"host": "//" + other.Listener.Addr().String() + "/x", "url": other.URL, "redirect": "redirect"} {
		d := served(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/redfish/v1/":
				fmt.Fprint(w, `{"Systems":{"@odata.id":"/s"},"Links":{"Sessions":{"@odata.id":"/login"}}}`)
			case r.URL.Path == "/login":
				w.Header().Set("X-Auth-Token", "t")
				w.WriteHeader(http.StatusCreated)
			case at == "redirect":
				http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			default:
				fmt.Fprintf(w, `{"Members":[{"@odata.id":%q}]}`, at)
			}
		})
		if _, err := d.State(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("somebody else was spoken to")
	}
}

// TestHostileBodies: nothing that a controller sends does more than give an
// error.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"null": "null", "nothing": "", "a list": "[]", "half": `{"PowerState":"O`, "a number": `{"PowerState":7}`,
		"deep": strings.Repeat(`{"Boot":`, 5000), "endless": "endless",
	} {
		d := served(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"1"`)
			switch r.URL.Path {
			case "/redfish/v1/":
				fmt.Fprint(w, `{"Systems":{"@odata.id":"/s"}}`)
			case "/s":
				fmt.Fprint(w, `{"Members":[{"@odata.id":"/s/1"}]}`)
			default:
				if body == "endless" {
					for range 64 {
						if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
							return
						}
					}
					return
				}
				fmt.Fprint(w, body)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		r, err := d.State(ctx)
		cancel()
		if err == nil && r.State != power.Unknown {
			t.Errorf("%s: %v", name, r)
		}
		if err := d.On(t.Context()); err == nil && body != "null" {
			t.Errorf("%s: it was switched on", name)
		}
	}
}

// TestSessionIsReopened: one that the controller dropped is opened again.
func TestSessionIsReopened(t *testing.T) {
	t.Parallel()
	b, err := bmc.Start(bmc.Config{Chassis: &bmc.Pretended{}, User: "admin", Password: password, Redfish: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cert, err := b.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	d := driverOf(t, b.Redfish(), func(a *muster.PowerAddress) { a.CertificateSHA256 = fmt.Sprintf("%x", sha256.Sum256(cert.Raw)) })
	for range 3 {
		if _, err := d.State(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.DropSessions()
	}
}

// FuzzBodies reads any body as everything that is read.
func FuzzBodies(f *testing.F) {
	f.Add([]byte(`{"PowerState":"On","Boot":{"BootSourceOverrideEnabled":"Once"},"Actions":{"#ComputerSystem.Reset":{"target":"/x"}}}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"error":{"message":"m","@Message.ExtendedInfo":[{"MessageId":"Base.1.0.ResourceInUse","Message":"x"}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseSystem(b)
		if err == nil {
			for _, p := range []string{s.Actions.Reset.Target, s.Settings.SettingsObject.Path} {
				if p != "" && !isPath(p) {
					t.Errorf("%q passed as a path", p)
				}
			}
		}
		_ = parse(b, &rootObject{})
		_ = parse(b, &collectionObject{})
		_, text := parseError(b)
		if strings.ContainsAny(text, "\n\r\x1b") || len(text) > 200 {
			t.Errorf("%q is no line", text)
		}
		for _, status := range []int{400, 401, 403, 404, 409, 412, 500, 503} {
			if muster.CodeOf(refused("x", answer{status: status, header: http.Header{}, body: b})) == "" {
				t.Error("no error")
			}
		}
	})
}
