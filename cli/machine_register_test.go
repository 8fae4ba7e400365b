package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// An administrator registers machines one by one and by a file; all that is wrong is
// told at once, nothing is registered by halves, and no password is shown.
func TestRegister(t *testing.T) {
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
	secret, pin := file("bmc", "sesame\n"), strings.Repeat("ab", 32)
	w.run("machine", "list", "--registered").want(t, 0, "No bare machine")
	w.refused(2, muster.ReasonBadUsage, "machine", "add", "r1-n01").naming("--mac")
	w.refused(2, muster.ReasonBadPowerAddress, "machine", "add", "r1-n01", "--mac", "52-54-00-AA-00-01", "--power", "ipmi://admin:sesame@10.0.0.11")
	w.refused(2, muster.ReasonRequired, "machine", "add", "r1-n01", "--mac", "52-54-00-AA-00-01", "--power", "ipmi://admin@10.0.0.11").at("machines[0].power_password", muster.ReasonRequired).naming("--power-password-file", "FILE")
	w.refused(2, muster.ReasonHasProblems, "machine", "add", "R1 n01", "--mac", "1", "--power", "wol", "--port", "3").at("machines[0].name", muster.ReasonBadValue).at("machines[0].nics[0].mac", muster.ReasonBadValue).at("machines[0].nics[0].switch", muster.ReasonRequired)
	w.run("machine", "add", "r1-n01", "--mac", "52-54-00-AA-00-01", "--power", "ipmi://admin@10.0.0.11", "--power-password-file", secret, "--rack", "r1").want(t, 0, "r1-n01 +added")
	w.run("machine", "add", "r1-n01", "--mac", "52:54:00:aa:00:01", "--power", "ipmi://admin@10.0.0.11", "--rack", "r1").want(t, 0, "r1-n01 +unchanged")
	w.refused(2, muster.ReasonNameTaken, "machine", "add", "r1-n01", "--mac", "52:54:00:aa:00:01", "--power", "ipmi://admin@10.0.0.11", "--rack", "r2").at("machines[0].name", muster.ReasonNameTaken).naming("r2", "r1", "--replace")
	w.run("machine", "add", "r1-n01", "--mac", "52:54:00:aa:00:01", "--power", "ipmi://admin@10.0.0.11", "--rack", "r2", "--replace").want(t, 0, "r1-n01 +changed +rack r2, before r1")
	w.run("machine", "add", "r1-n01", "--mac", "52:54:00:aa:00:01", "--power", "ipmi://admin@10.0.0.11", "--rack", "r2", "--power-password-file", file("other", "new\n"), "--replace").want(t, 0, "r1-n01 +changed +another password")
	w.refused(2, muster.ReasonBadValue, "machine", "add", "r1-n02", "--mac", "52:54:00:aa:00:07", "--power", "ipmi://admin@10.0.0.12", "--power-password-file", file("passwd", "root:x:0\nalice:x:1\n"))
	w.run("machine", "list", "--registered", "--state", "waiting").want(t, 0, "No bare machine")
	w.refused(2, muster.ReasonAddressTaken, "machine", "add", "r1-n02", "--mac", "52:54:00:aa:00:01", "--power", "wol").at("machines[0].nics[0].mac", muster.ReasonAddressTaken).naming("r1-n01")
	w.refused(2, muster.ReasonNameTaken, "machine", "add", "fake-01", "--mac", "52:54:00:aa:00:05", "--power", "wol").at("machines[0].name", muster.ReasonNameTaken).naming("fake")

	both := file("both.csv", "name,mac,power,power_certificate_sha256,power_password_file\nr1-n03,nonsense,redfish://root@bmc3,"+pin+","+filepath.Join(dir, "none")+"\n")
	w.refused(2, muster.ReasonHasProblems, "machine", "import", both).at("r1-n03.nics[0].mac", muster.ReasonBadValue, "line 2, column B").at("r1-n03.power.password_file", muster.ReasonFileUnreadable)
	bad := file("bad.csv", "name,mac,power,power_certificate_sha256,power_password_file\nr1-n03,52:54:00:aa:00:03,redfish://root@bmc3,"+pin+","+filepath.Join(dir, "none")+"\n")
	w.refused(2, muster.ReasonFileUnreadable, "machine", "import", bad).at("r1-n03.power.password_file", muster.ReasonFileUnreadable, "line 2, column E").naming("none")
	half := file("half.csv", "name,mac,power\nr1-n03,52:54:00:aa:00:03,wol\nr1-n04,52:54:00:aa:00:01,wol\n")
	w.refused(2, muster.ReasonAddressTaken, "machine", "import", half).at("r1-n04.nics[0].mac", muster.ReasonAddressTaken, "line 3, column B").naming("r1-n04", "52:54:00:aa:00:01", "r1-n01")
	good := file("good.csv", "name,mac,power,power_password,rack,power_certificate_sha256\nr1-n03,52:54:00:aa:00:03,wol,,r1,\nr1-n04,52:54:00:aa:00:04,redfish://root@bmc4,sesame,r1,"+pin+"\n")
	w.run("machine", "import", good, "--dry-run").want(t, 0, "r1-n03 +added", "r1-n04 +added")
	r := w.run("machine", "list", "--registered")
	r.want(t, 0, "r1-n01 +approved +52:54:00:aa:00:01")
	if strings.Contains(r.out, "r1-n03") {
		t.Errorf("something was registered that was only tried, or by halves:\n%s", r.out)
	}
	w.run("machine", "import", good).want(t, 0, "r1-n03 +added", "r1-n04 +added")
	w.run("machine", "import", good).want(t, 0, "r1-n03 +unchanged", "r1-n04 +unchanged")

	// Off, and cut off, are proven by controllers and ports: none stands at two machines.
	w.refused(2, muster.ReasonAddressTaken, "machine", "add", "r1-n05", "--mac", "52:54:00:aa:00:06", "--power", "ipmi://admin@10.0.0.11", "--power-password-file", secret).at("machines[0].power.address", muster.ReasonAddressTaken).naming("10.0.0.11", "machine delete r1-n01")
	ports := "name,mac,power,power_password,switch,port,message_mac,message_switch,message_port\n"
	twice := file("twice.csv", ports+"r1-n05,52:54:00:aa:00:06,ipmi://root@bmc5,sesame,s1,5,52:54:00:aa:01:06,s1,5\nr1-n06,52:54:00:aa:00:0a,ipmi://root@bmc5,sesame,s1,5,,,\n")
	w.refused(2, muster.ReasonHasProblems, "machine", "import", twice, "--dry-run").at("r1-n05.nics[1].port", muster.ReasonGivenTwice, "line 2, column I").at("r1-n06.power.address", muster.ReasonGivenTwice, "line 3, column C").at("r1-n06.nics[0].port", muster.ReasonGivenTwice, "line 3, column F").naming("r1-n05", "r1-n06", "bmc5", "s1", "line 2, column C", "line 2, column F", "change the file").without("machine delete")
	once := file("once.csv", ports+"r1-n05,52:54:00:aa:00:06,ipmi://root@bmc5,sesame,s1,5,,,\nr1-n06,52:54:00:aa:00:0a,ipmi://root@bmc6,sesame,s1,6,,,\n")
	w.run("machine", "import", once).want(t, 0, "r1-n05 +added", "r1-n06 +added")
	// Two that were taken for each other change places in one file.
	swapped := file("swapped.csv", ports+"r1-n05,52:54:00:aa:00:06,ipmi://root@bmc6,sesame,s1,6,,,\nr1-n06,52:54:00:aa:00:0a,ipmi://root@bmc5,sesame,s1,5,,,\n")
	w.run("machine", "import", swapped, "--replace").want(t, 0, "r1-n05 +changed", "r1-n06 +changed")
	w.refused(3, muster.ReasonNotApproved, "machine", "test", "r1-n05").naming("r1-n05", "machine boot-queue")
	w.refused(3, muster.ReasonHasProblems, "machine", "drain", "r1-n0[5-7]").at("r1-n05", muster.ReasonNotApproved).at("r1-n06", muster.ReasonNotApproved).at("r1-n07", muster.ReasonNoSuchMachine)
	w.run("machine", "delete", "r1-n0[5-6]").want(t, 0)

	// One that came by itself is taken for the one whose interface it has.
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		return tx.PutRegistration(muster.Registration{
			ID: "m-525400aa0009", State: muster.RegistrationWaiting, Power: muster.PowerAddress{Kind: muster.PowerWOL},
			NICs: []muster.RegisteredNIC{{MAC: "52:54:00:aa:00:09", Use: muster.UseManagement}}, Facts: &muster.Facts{Cores: 8},
		}, "it came by itself")
	})
	if err != nil {
		t.Fatal(err)
	}
	w.run("machine", "list", "--registered", "--state", "waiting").want(t, 0, "m-525400aa0009 +waiting")
	w.run("machine", "add", "r1-n09", "--mac", "52:54:00:aa:00:09", "--power", "wol").want(t, 0, "r1-n09 +approved .*m-525400aa0009")
	w.run("machine", "list", "--registered", "-o", "json").want(t, 0, `"cores": 8`)
	w.run("machine", "block", "r1-n0[3,9]").want(t, 0, "r1-n03 +blocked", "r1-n09 +blocked")
	w.run("machine", "approve", "r1-n03").want(t, 0, "r1-n03 +approved")
	w.refused(3, muster.ReasonNotRegistered, "machine", "delete", "r1-n08,r1-n09").naming("r1-n08")
	w.run("machine", "delete", "r1-n09").want(t, 0, "r1-n09 +deleted")
	w.refused(2, muster.ReasonBadUsage, "machine", "discover")
	w.refused(2, muster.ReasonBadValue, "machine", "list", "--registered", "--state", "wating").naming("waiting")
	w.refused(3, muster.ReasonNotRegistered, "machine", "discover", "r1-n08").naming("r1-n08")
	w.run("machine", "discover", "r1-n0[1,3]").want(t, 0, "r1-n01 +asked", "r1-n03 +asked")
	w.refused(8, muster.ReasonNotDoneYet, "machine", "discover", "r1-n03", "--wait", "--timeout", "50ms").naming("r1-n03", "50ms", "machine show r1-n03")
	told := make(chan error, 1)
	go func() {
		time.Sleep(100 * time.Millisecond)
		told <- s.Control.RecordFacts(t.Context(), "r1-n03", muster.Facts{Cores: 8, Memory: 64 << 30}, muster.TrustNetwork, time.Now().Add(time.Hour))
	}()
	w.run("machine", "discover", "r1-n03", "--wait").want(t, 0, "r1-n03 +discovered +8 cores, 64")
	if err := <-told; err != nil {
		t.Error(err)
	}
	w.refused(2, muster.ReasonNotConfirmed, "machine", "confirm-off", "r1-n01").naming("--yes")
	w.refused(4, muster.ReasonNobodyAsks, "machine", "confirm-off", "r1-n01", "--yes").naming("r1-n01", "muster machine show r1-n01")
	w.refused(3, muster.ReasonNotRegistered, "machine", "confirm-off", "r1-n08", "--yes").naming("r1-n08")
	err = s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		r, err := tx.Registration("r1-n01")
		if err != nil {
			return err
		}
		r.ManualFence = &muster.ManualFence{Asked: time.Now(), Why: "its controller is deaf"}
		if err := tx.PutRegistration(r, "waits for a human"); err != nil {
			return err
		}
		return tx.PutMachine(muster.Machine{ID: "r1-n01", Provider: "metal", Phase: muster.MachineNew}, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	w.run("machine", "show", "r1-n01").want(t, 0, "its controller is deaf", "muster machine confirm-off r1-n01 --yes")
	w.run("machine", "confirm-off", "r1-n01", "--yes").want(t, 0, "r1-n01 +confirmed-off")
	w.run("machine", "confirm-off", "r1-n01", "--yes").want(t, 0, "r1-n01 +unchanged +said by ")

	all := w.run("machine", "list", "--registered", "-o", "json").out + w.run("events").out
	if strings.Contains(all, "sesame") {
		t.Errorf("a password is shown:\n%s", all)
	}
	view := func(id muster.MachineID) (v []byte, err error) {
		err = s.Store.View(t.Context(), muster.System(), func(tx *store.Tx) (err error) { v, err = tx.PowerSecret(id); return err })
		return v, err
	}
	for id, want := range map[muster.MachineID]string{"r1-n01": "new", "r1-n04": "sesame"} {
		if v, err := view(id); err != nil || string(v) != want {
			t.Errorf("%s: %q, %v", id, v, err)
		}
	}
}

// What fails only at the first command is told when a machine is added, imported, and only
// tried, with everything else and its place.
func TestRegisterUnusable(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1, Control: func(c *control.Config) {
		c.Unusable = func(r muster.Registration) (list []muster.Problem) {
			if r.Power.Address == "/none" {
				list = append(list, muster.Problem{Field: "power.address", Reason: muster.ReasonFileUnreadable, Message: "/none is not there"})
			}
			if i := len(r.NICs) - 1; r.NICs[i].Switch == "arista:leaf1" {
				list = append(list, muster.Problem{Field: fmt.Sprintf("nics[%d].switch", i), Reason: muster.ReasonNoProvider, Message: "nothing drives it"})
			}
			return list
		}
	}})
	w := at(t, s)
	list := filepath.Join(t.TempDir(), "x.csv")
	text := "Name;MAC;Power;message MAC;message switch;message port;;\n" +
		"a;52:54:00:aa:00:01;script:///none;52:54:00:aa:01:01;arista:leaf1;3;;\n" +
		"b;52:54:00:aa:00:02;ipmi://admin@b;;;;;\n"
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{{"--dry-run"}, nil} {
		w.refused(2, muster.ReasonHasProblems, append([]string{"machine", "import", list}, more...)...).
			at("a.power.address", muster.ReasonFileUnreadable, "line 2, column C").at("a.nics[1].switch", muster.ReasonNoProvider, "line 2, column E").
			at("b.power.password", muster.ReasonRequired, "line 3, column C")
	}
	// What the file itself shows is told with what only the server knows.
	if err := os.WriteFile(list, []byte(strings.Replace(text, "52:54:00:aa:00:02", "nonsense", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.refused(2, muster.ReasonHasProblems, "machine", "import", list, "--dry-run").
		at("b.nics[0].mac", muster.ReasonBadValue, "line 3, column B").at("a.power.address", muster.ReasonFileUnreadable, "line 2, column C").
		at("b.power.password", muster.ReasonRequired, "line 3, column C")
	w.refused(2, muster.ReasonHasProblems, "machine", "add", "a b", "--mac", "52:54:00:aa:00:01", "--power", "script:///none",
		"--message-mac", "52:54:00:aa:01:01", "--message-switch", "arista:leaf1", "--message-port", "3").
		at("machines[0].name", muster.ReasonBadValue).at("machines[0].power.address", muster.ReasonFileUnreadable).at("machines[0].nics[1].switch", muster.ReasonNoProvider)
}

// Whatever is wrong with a file is reported once, with its line, and hides nothing: neither what
// else is wrong with it nor what only the server sees.
func TestImportReportsEachFaultOnce(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	w := at(t, s)
	list := filepath.Join(t.TempDir(), "x.csv")
	long := strings.Repeat("r", 65)
	text := "mac,name,power,rack,power_password\n" +
		"52:54:00:aa:00:01,,wol," + long + ",\n" + // a name that is missing
		"52:54:00:aa:00:02,b,wlo,r1,\n" + // no way to switch a machine
		"52:54:00:aa:00:03,c,ipmi://admin@c,r1,\n" + // a password is missing, which the server knows
		"52:54:00:aa:00:03,fake-01,wol,r1,\n" // an interface that is c's, a name that is taken
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := w.refused(2, muster.ReasonHasProblems, "machine", "import", list, "--dry-run").
		at("machines[0].name", muster.ReasonRequired, "line 2, column B").at("machines[0].rack", muster.ReasonBadValue, "line 2, column D").
		at("power", muster.ReasonBadPowerAddress, "line 3, column C").
		at("c.power.password", muster.ReasonRequired, "line 4, column E").
		at("fake-01.nics[0].mac", muster.ReasonGivenTwice, "line 5, column A").at("fake-01.name", muster.ReasonNameTaken, "line 5, column B").
		naming("line 4, column A", "change the file").without("machine delete", "b.power", "schema", "length")
	if n := len(r.list[0].Problems); n != 6 {
		t.Errorf("%d problems: %s", n, r.text)
	}
	// The API says it in the same words, without a file.
	_, err := s.Client("").Register(t.Context(), wire.RegisterRequest{Machines: []wire.BareMachine{
		{NICs: []muster.RegisteredNIC{{MAC: "52:54:00:aa:00:01", Use: muster.UseManagement}}, Power: muster.PowerAddress{Kind: muster.PowerWOL}, Rack: long},
		{Name: "c", NICs: []muster.RegisteredNIC{{MAC: "52:54:00:aa:00:01", Use: muster.UseManagement, Port: "3"}}, Power: muster.PowerAddress{Kind: muster.PowerWOL}},
	}})
	want := []string{"machines[0].name required", "machines[0].rack bad-value", "machines[1].nics[0].switch required", "machines[1].nics[0].mac given-twice"}
	if got := errortest.Problems(errortest.Listed(err)); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// What is said of a power address by flags or in a file is what is registered, shown and
// printed, and what no driver would take is refused.
func TestRegisterPower(t *testing.T) {
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
	secret, long := file("bmc", "sesame\n"), file("long", strings.Repeat("p", 21)+"\n")
	body, err := os.ReadFile("../metal/inventory/testdata/authority.pem")
	if err != nil {
		t.Fatal(err)
	}
	authority := file("ca.pem", string(body))
	sum := strings.Repeat("ab", 32)

	add := func(name, mac, power string, more ...string) []string {
		return append([]string{"machine", "add", name, "--mac", mac, "--power", power}, more...)
	}
	w.refused(2, muster.ReasonRequired, add("m1", "52:54:00:bb:00:01", "redfish://root@b1", "--power-password-file", secret)...).
		at("machines[0].power.certificate_sha256", muster.ReasonRequired)
	w.refused(2, muster.ReasonHasProblems, add("m1", "52:54:00:bb:00:01", "ipmi://an-account-too-long@b1", "--power-password-file", long, "--power-boot", "http", "--power-quirk", "dell")...).
		at("machines[0].power.user", muster.ReasonTooLarge).at("machines[0].power_password", muster.ReasonTooLarge).
		at("machines[0].power.boot", muster.ReasonContradiction).at("machines[0].power.quirk", muster.ReasonBadValue)
	w.refused(2, muster.ReasonBadCertificate, add("m1", "52:54:00:bb:00:01", "redfish://root@b1", "--power-password-file", secret, "--power-authority", secret)...).
		at("machines[0].power.authority", muster.ReasonBadCertificate)
	w.run(add("m1", "52:54:00:bb:00:01", "redfish://root@b1/redfish/v1/Systems/1", "--power-password-file", secret, "--power-authority", authority, "--power-certificate", "sha256:"+strings.ToUpper(sum),
		"--power-boot-mode", "uefi", "--power-boot", "http", "--power-quirk", "no-match")...).want(t, 0, "m1 +added")
	w.run(add("m2", "52:54:00:bb:00:02", "wol", "--power-interface", "eno2")...).want(t, 0, "m2 +added")
	w.run(add("m3", "52:54:00:bb:00:03", "script:///etc/power", "--power-proves")...).want(t, 0, "m3 +added")

	bad := file("bad.yaml", "- {name: m4, mac: 52:54:00:bb:00:04, power: {kind: redfish, address: b4, user: root, password_file: "+secret+", authority_file: "+secret+"}}\n"+
		"- {name: m5, mac: 52:54:00:bb:00:05, power: {kind: ipmi, address: b5, user: root, password_file: "+long+"}}\n")
	w.refused(2, muster.ReasonHasProblems, "machine", "import", bad, "--dry-run").
		at("m4.power.authority_file", muster.ReasonBadCertificate, "line 1").at("m5.power.password_file", muster.ReasonTooLarge, "line 2")
	good := file("good.yaml", "- {name: m4, mac: 52:54:00:bb:00:04, power: {kind: redfish, address: b4, user: root, password_file: "+secret+", authority_file: "+authority+"}}\n")
	w.run("machine", "import", good).want(t, 0, "m4 +added")
	w.run("machine", "import", good).want(t, 0, "m4 +unchanged")

	pem := strings.TrimSpace(string(body))
	want := map[muster.MachineID]muster.PowerAddress{
		"m1": {
			Kind: muster.PowerRedfish, Address: "b1", User: "root", System: "/redfish/v1/Systems/1", Quirk: "no-match", CertificateSHA256: sum, Authority: pem,
			BootMode: muster.BootModeUEFI, Boot: muster.BootHTTP,
		},
		"m2": {Kind: muster.PowerWOL, Interface: "eno2"},
		"m3": {Kind: muster.PowerScript, Address: "/etc/power", Proves: true},
		"m4": {Kind: muster.PowerRedfish, Address: "b4", User: "root", Authority: pem},
	}
	for id, p := range want {
		err := s.Store.View(t.Context(), muster.System(), func(tx *store.Tx) error {
			r, err := tx.Registration(id)
			if err == nil && r.Power != p {
				t.Errorf("%s: %+v, want %+v", id, r.Power, p)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	err = s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		return tx.PutMachine(muster.Machine{ID: "m1", Provider: "metal", Phase: muster.MachineNew}, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	w.run("machine", "show", "m1").want(t, 0, "quirk no-match", "boot mode uefi", "boots by http", "sha256:"+sum, "authority "+muster.PowerAddress{Authority: pem}.AuthorityName())
	w.run("machine", "show", "m1", "-o", "json").want(t, 0, `"boot_mode": "uefi"`, `"boot": "http"`, `"authority": "-----BEGIN CERTIFICATE-----`)
}

// A machine has as many interfaces for messages as are given, InfiniBand's, too.
func TestRegisterMessageInterfaces(t *testing.T) {
	t.Parallel()
	w := at(t, controltest.Start(t, controltest.Options{Machines: 1}))
	w.run("machine", "add", "r1-n01", "--mac", "52:54:00:aa:00:01", "--power", "wol", "--message-mac", "52:54:00:aa:01:01", "--message-switch", "sw1", "--message-port", "1",
		"--message-mac", "0x0002c903000a1b2c").want(t, 0, "r1-n01 +added")
	w.run("machine", "list", "--registered").want(t, 0, "52:54:00:aa:01:01 00:02:c9:03:00:0a:1b:2c")
	w.run("machine", "add", "r1-n01", "--mac", "52:54:00:aa:00:01", "--power", "wol", "--message-mac", "52:54:00:aa:01:01,0002:c903:000a:1b2c", "--message-switch", "sw1", "--message-port", "1").want(t, 0, "unchanged")
	w.refused(2, muster.ReasonHasProblems, "machine", "add", "r1-n02", "--mac", "0002:c903:000a:1b2d", "--power", "wol", "--message-port", "1").
		at("machines[0].nics[0].use", muster.ReasonContradiction).at("machines[0].nics[1].mac", muster.ReasonBadValue).at("machines[0].nics[1].switch", muster.ReasonRequired)
}
