package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
)

// The key K_G of a controller is given in every way that its password is, is kept as it
// is, and is shown to nobody.
func TestRegisterKey(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	w := at(t, s)
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	kept := func(id muster.MachineID, want string) {
		t.Helper()
		var key []byte
		err := s.Store.View(t.Context(), muster.System(), func(tx *store.Tx) (err error) { key, err = tx.PowerKey(id); return err })
		if string(key) != want || (err != nil) != (want == "") {
			t.Errorf("the key of %s is %q, %v", id, key, err)
		}
	}
	password := file("password", "sesame\n")
	add := func(more ...string) []string {
		return append([]string{"machine", "add", "r1-n01", "--mac", "52:54:00:aa:00:01", "--power", "ipmi://admin@10.0.0.11", "--replace"}, more...)
	}
	w.run(add("--power-password-file", password, "--power-key-file", file("key", "open rack\n"))...).want(t, 0, "r1-n01 +added")
	kept("r1-n01", "open rack")
	w.run(add()...).want(t, 0, "r1-n01 +unchanged")
	w.run(add("--power-key-file", file("hex", "0x6f70656e207261636b00\n"))...).want(t, 0, "r1-n01 +unchanged") // the same
	w.run(add("--power-key-file", file("other", "other\n"))...).want(t, 0, "r1-n01 +changed +another key K_G")
	kept("r1-n01", "other")
	w.refused(2, muster.ReasonTooLarge, add("--power-key-file", file("long", strings.Repeat("k", 21)))...).at("machines[0].power_key", muster.ReasonTooLarge)
	w.run(add("--power-key-file", file("none", "0x00\n"))...).want(t, 0, "r1-n01 +changed")
	kept("r1-n01", "")

	csv := file("rack.csv", "name,mac,power,power_password,power_key,power_key_file\nr1-n02,52:54:00:aa:00:02,ipmi://a@bmc2,sesame,0x6b6579,\nr1-n03,52:54:00:aa:00:03,ipmi://a@bmc3,sesame,,"+filepath.Join(dir, "key")+"\n")
	w.run("machine", "import", csv).want(t, 0, "r1-n02 +added", "r1-n03 +added")
	yaml := file("rack.yaml", "machines:\n- {name: r1-n04, mac: 52:54:00:aa:00:04, power: {kind: ipmi, address: bmc4, user: a, password: sesame, key: 0x6b6579}}\n"+
		"- {name: r1-n05, mac: 52:54:00:aa:00:05, power: {kind: ipmi, address: bmc5, user: a, password: sesame, key_file: "+filepath.Join(dir, "key")+"}}\n")
	w.run("machine", "import", yaml).want(t, 0, "r1-n04 +added", "r1-n05 +added")
	for id, want := range map[muster.MachineID]string{"r1-n02": "key", "r1-n03": "open rack", "r1-n04": "key", "r1-n05": "open rack"} {
		kept(id, want)
	}
	bad := file("bad.yaml", "machines:\n- {name: r1-n06, mac: 52:54:00:aa:00:06, power: {kind: wol, key: k}}\n"+
		"- {name: r1-n07, mac: 52:54:00:aa:00:07, power: {kind: ipmi, address: bmc7, user: a, password: sesame, key: 0xg0}}\n"+
		"- {name: r1-n08, mac: 52:54:00:aa:00:08, power: {kind: ipmi, address: bmc8, user: a, password: sesame, key: k, key_file: key}}\n"+
		"- {name: r1-n09, mac: 52:54:00:aa:00:09, power: {kind: ipmi, address: bmc9, user: a, password: sesame, key_file: "+filepath.Join(dir, "long")+"}}\n")
	w.refused(2, muster.ReasonHasProblems, "machine", "import", bad).at("r1-n06.power.key", muster.ReasonContradiction).at("r1-n07.power.key", muster.ReasonBadValue).
		at("r1-n08.power", muster.ReasonContradiction).at("r1-n09.power.key_file", muster.ReasonTooLarge)
	if r := w.run("machine", "list", "--registered", "-o", "json"); strings.Contains(r.out, "open rack") || strings.Contains(r.out, "6b6579") {
		t.Errorf("a key is shown:\n%s", r.out)
	}
	// A machine that is switched otherwise has none any more.
	w.run("machine", "add", "r1-n02", "--mac", "52:54:00:aa:00:02", "--power", "wol", "--replace").want(t, 0, "r1-n02 +changed")
	kept("r1-n02", "")
}
