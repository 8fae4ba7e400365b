package powertest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/bmc"
	"github.com/muster-hpc/muster/metal/power/drivers"
)

const (
	user     = "admin"
	password = "c0rrect-h0rse"
)

func secret(context.Context) ([]byte, error) { return []byte(password), nil }

// local is the address of a controller on this computer.
func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// sharedCertificate saves the making of one for each controller.
var sharedCertificate = sync.OnceValues(bmc.SelfSigned)

// controller starts one with a pretended chassis.
func controller(t testing.TB, change func(*bmc.Config)) (*bmc.BMC, *bmc.Pretended) {
	t.Helper()
	cert, err := sharedCertificate()
	if err != nil {
		t.Fatal(err)
	}
	chassis := &bmc.Pretended{}
	cfg := bmc.Config{Chassis: chassis, User: user, Password: password, Certificate: &cert, Serial: "S1"}
	change(&cfg)
	b, err := bmc.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b, chassis
}

func listensIPMI(c *bmc.Config)    { c.IPMI = "127.0.0.1:0" }
func listensRedfish(c *bmc.Config) { c.Redfish = "127.0.0.1:0" }

func subject(b *bmc.BMC, chassis *bmc.Pretended, a muster.PowerAddress) Subject {
	return Subject{
		Drivers: drivers.All(), Password: password,
		Target:  power.Target{Machine: "m1", Rack: "r1", Address: a, Secret: secret},
		Powered: func() bool { on, _ := chassis.Power(context.Background()); return on },
		Starts: func() (network []bool) {
			for _, n := range chassis.Starts() {
				network = append(network, n.Device == bmc.DeviceNetwork || n.Device == bmc.DeviceHTTP)
			}
			return network
		},
		Restart: func() { b.Restart(context.Background()) },
		Break:   b.Break, Sessions: b.Sessions, Refused: b.Refused,
	}
}

func addressIPMI(b *bmc.BMC) muster.PowerAddress {
	return muster.PowerAddress{Kind: muster.PowerIPMI, Address: local(b.IPMI()), User: user}
}

func addressRedfish(t testing.TB, b *bmc.BMC) muster.PowerAddress {
	t.Helper()
	cert, err := b.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	return muster.PowerAddress{Kind: muster.PowerRedfish, Address: local(b.Redfish()), User: user,
		CertificateSHA256: fmt.Sprintf("%x", sha256.Sum256(cert.Raw))}
}

func TestIPMI(t *testing.T) {
	t.Parallel()
	Suite(t, func(t *testing.T) Subject {
		b, chassis := controller(t, listensIPMI)
		return subject(b, chassis, addressIPMI(b))
	})
}

// TestIPMIQuirks runs what the quirks touch.
func TestIPMIQuirks(t *testing.T) {
	t.Parallel()
	for _, quirk := range []string{"suite3", "administrator", "blind-boot"} {
		t.Run(quirk, func(t *testing.T) {
			t.Parallel()
			Manners(t, func(t *testing.T) Subject {
				b, chassis := controller(t, listensIPMI)
				a := addressIPMI(b)
				a.Quirk = quirk
				s := subject(b, chassis, a)
				s.Blind = quirk == "blind-boot"
				return s
			})
		})
	}
}

func TestRedfish(t *testing.T) {
	t.Parallel()
	Suite(t, func(t *testing.T) Subject {
		b, chassis := controller(t, listensRedfish)
		return subject(b, chassis, addressRedfish(t, b))
	})
}

// TestRedfishManners runs what makers differ in against controllers of many makers' manners, each
// with the address that an operator would write for it.
func TestRedfishManners(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model  bmc.Model
		change func(*muster.PowerAddress)
	}{
		"uefi":         {change: func(a *muster.PowerAddress) { a.BootMode = muster.BootModeUEFI }},
		"http boot":    {change: func(a *muster.PowerAddress) { a.Boot = muster.BootHTTP }},
		"needs match":  {model: bmc.Model{NeedsMatch: true}},
		"weak tag":     {model: bmc.Model{WeakTag: true, NeedsMatch: true}},
		"future":       {model: bmc.Model{Future: true}},
		"future known": {model: bmc.Model{Future: true, NeedsMatch: true}, change: func(a *muster.PowerAddress) { a.Quirk = "ami-settings" }},
		"no mode":      {model: bmc.Model{RefusesMode: true}, change: func(a *muster.PowerAddress) { a.BootMode, a.Quirk = muster.BootModeUEFI, "no-mode" }},
		"powering on":  {model: bmc.Model{Rises: 200 * time.Millisecond}},
		"hides resets": {model: bmc.Model{HidesResets: true}},
		"force on":     {model: bmc.Model{Resets: []string{"ForceOn", "ForceOff"}}},
		"bad types":    {model: bmc.Model{BadTypes: true}},
		"two systems":  {model: bmc.Model{Second: true}, change: func(a *muster.PowerAddress) { a.System = "/redfish/v1/Systems/1" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Manners(t, func(t *testing.T) Subject {
				b, chassis := controller(t, func(cfg *bmc.Config) { listensRedfish(cfg); cfg.Model = c.model })
				a := addressRedfish(t, b)
				if c.change != nil {
					c.change(&a)
				}
				s := subject(b, chassis, a)
				s.Rises = c.model.Rises
				return s
			})
		})
	}
	t.Run("no sessions", func(t *testing.T) {
		t.Parallel()
		Suite(t, func(t *testing.T) Subject {
			b, chassis := controller(t, func(cfg *bmc.Config) { listensRedfish(cfg); cfg.Model.NoSessions = true })
			s := subject(b, chassis, addressRedfish(t, b))
			s.Sessions = nil
			return s
		})
	})
}

// TestBootMode: what the address says of the firmware is what the machine starts with, and
// where it says nothing, Redfish leaves the firmware as it is. IPMI cannot.
func TestBootMode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode muster.BootMode
		boot muster.BootProtocol
		was  bool // the controller's mode before: UEFI
		want map[muster.PowerKind]bmc.Next
	}{
		"uefi": {mode: muster.BootModeUEFI, want: map[muster.PowerKind]bmc.Next{
			muster.PowerIPMI: {Device: bmc.DeviceNetwork, UEFI: true}, muster.PowerRedfish: {Device: bmc.DeviceNetwork, UEFI: true}}},
		"bios": {mode: muster.BootModeBIOS, was: true, want: map[muster.PowerKind]bmc.Next{
			muster.PowerIPMI: {Device: bmc.DeviceNetwork}, muster.PowerRedfish: {Device: bmc.DeviceNetwork}}},
		"unknown, of UEFI": {was: true, want: map[muster.PowerKind]bmc.Next{
			muster.PowerIPMI: {Device: bmc.DeviceNetwork}, muster.PowerRedfish: {Device: bmc.DeviceNetwork, UEFI: true}}},
		"unknown, of a BIOS": {want: map[muster.PowerKind]bmc.Next{
			muster.PowerIPMI: {Device: bmc.DeviceNetwork}, muster.PowerRedfish: {Device: bmc.DeviceNetwork}}},
		"http": {boot: muster.BootHTTP, want: map[muster.PowerKind]bmc.Next{muster.PowerRedfish: {Device: bmc.DeviceHTTP, UEFI: true}}},
	} {
		for kind, want := range c.want {
			for _, quirk := range []string{"", "send-mode"} {
				if quirk != "" && kind != muster.PowerRedfish {
					continue
				}
				t.Run(strings.TrimSpace(name+" "+string(kind)+" "+quirk), func(t *testing.T) {
					t.Parallel()
					b, chassis := controller(t, func(cfg *bmc.Config) { listensIPMI(cfg); listensRedfish(cfg); cfg.Model.UEFI = c.was })
					a := addressIPMI(b)
					if kind == muster.PowerRedfish {
						a = addressRedfish(t, b)
					}
					a.BootMode, a.Boot, a.Quirk = c.mode, c.boot, quirk
					s := subject(b, chassis, a)
					if _, err := s.control(t).Boot(within(t, 30*time.Second), s.Target); err != nil {
						t.Fatal(err)
					}
					if got := chassis.Starts(); len(got) != 1 || got[0] != want {
						t.Errorf("it starts with %+v, want %+v", got, want)
					}
				})
			}
		}
	}
}
