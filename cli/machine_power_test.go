package cli_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
)

// Every field of a power address can be given by flags, whichever are added, and is
// registered as it was given.
func TestEveryFieldOfPower(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	w := at(t, s)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := strings.Repeat("ab", 32)
	for i, flags := range [][]string{
		{"--power", "redfish://u@b1/redfish/v1/Systems/1", "--power-password-file", password, "--power-certificate", sum, "--power-boot-mode", "uefi", "--power-boot", "http", "--power-quirk", "basic"},
		{"--power", "redfish://u@b2", "--power-password-file", password, "--power-authority", "../metal/inventory/testdata/authority.pem"},
		{"--power", "wol", "--power-interface", "eno2"},
		{"--power", "script:///x", "--power-proves"},
	} {
		n := string(rune('1' + i))
		w.run(append([]string{"machine", "add", "p" + n, "--mac", "52:54:00:bb:00:0" + n}, flags...)...).want(t, 0, "added")
	}
	said := map[string]bool{}
	err := s.Store.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		list, err := tx.Registrations(store.RegistrationFilter{})
		for _, r := range list {
			for v, i := reflect.ValueOf(r.Power), 0; i < v.NumField(); i++ {
				if !v.Field(i).IsZero() {
					said[v.Type().Field(i).Name] = true
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, of := 0, reflect.TypeFor[muster.PowerAddress](); i < of.NumField(); i++ {
		if name := of.Field(i).Name; !said[name] {
			t.Errorf("no flag fills in %s", name)
		}
	}
}
