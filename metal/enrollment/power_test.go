package enrollment_test

import (
	"os"
	"reflect"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/enrollment"
)

// Every field of a power address can be said by a rule, whichever are added.
func TestEveryFieldOfPower(t *testing.T) {
	t.Parallel()
	said := map[string]bool{"CertificateSHA256": true} // each controller has its own
	for _, then := range []string{
		"power: 'redfish://u@b-{mac}/redfish/v1/Systems/1', power_password_file: bmc, power_authority_file: pem, power_boot_mode: uefi, power_boot: http, power_quirk: basic",
		"power: wol, power_interface: eno2",
		"power: 'script:///x', power_proves: yes",
	} {
		files := func(name string) ([]byte, error) {
			if name == "pem" {
				return os.ReadFile("../inventory/testdata/authority.pem")
			}
			return []byte("sesame"), nil
		}
		r, err := enrollment.Decode("rules.yaml", []byte("rules: [{name: a, match: {mac: '*'}, then: {state: approved, "+then+"}}]"), files)
		if err != nil {
			t.Errorf("%s: %+v", then, problems(err))
			continue
		}
		d, ok, err := r.For(guest())
		if err != nil || !ok {
			t.Errorf("%s: %v", then, err)
		}
		for v, i := reflect.ValueOf(d.Power), 0; i < v.NumField(); i++ {
			if !v.Field(i).IsZero() {
				said[v.Type().Field(i).Name] = true
			}
		}
	}
	for i, of := 0, reflect.TypeFor[muster.PowerAddress](); i < of.NumField(); i++ {
		if name := of.Field(i).Name; !said[name] {
			t.Errorf("no rule can say %s", name)
		}
	}
}
