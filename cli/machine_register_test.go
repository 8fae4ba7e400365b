package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/controltest"
	"github.com/muster-hpc/muster/store"
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
	secret := file("bmc", "sesame\n")
	w.run("machine", "registered").want(t, 0, "No bare machine is registered")
	w.run("machine", "add", "r1-n01").want(t, 2, "--mac is missing")
	w.run("machine", "add", "r1-n01", "--mac", "52-54-00-AA-00-01", "--power", "ipmi://admin:sesame@10.0.0.11").want(t, 2, "leave the password out")
	w.run("machine", "add", "r1-n01", "--mac", "52-54-00-AA-00-01", "--power", "ipmi://admin@10.0.0.11").want(t, 2, "the password of its controller is missing", "--power-password-file FILE")
	w.run("machine", "add", "R1 n01", "--mac", "1", "--power", "wol", "--port", "3").want(t, 2, "is not a name", "is not the address", "belongs to a switch")
	w.run("machine", "add", "r1-n01", "--mac", "52-54-00-AA-00-01", "--power", "ipmi://admin@10.0.0.11", "--power-password-file", secret, "--rack", "r1").want(t, 0, "r1-n01 +added")
	w.run("machine", "add", "r1-n01", "--mac", "52:54:00:aa:00:01", "--power", "ipmi://admin@10.0.0.11", "--rack", "r1").want(t, 0, "r1-n01 +unchanged")
	w.run("machine", "add", "r1-n01", "--mac", "52:54:00:aa:00:01", "--power", "ipmi://admin@10.0.0.11", "--rack", "r2").want(t, 2, "registered already, and not like this: rack r2, before r1", "--replace")
	w.run("machine", "add", "r1-n01", "--mac", "52:54:00:aa:00:01", "--power", "ipmi://admin@10.0.0.11", "--rack", "r2", "--replace").want(t, 0, "r1-n01 +changed +rack r2, before r1")
	w.run("machine", "add", "r1-n01", "--mac", "52:54:00:aa:00:01", "--power", "ipmi://admin@10.0.0.11", "--rack", "r2", "--power-password-file", file("other", "new\n"), "--replace").want(t, 0, "r1-n01 +changed +another password")
	w.run("machine", "add", "r1-n02", "--mac", "52:54:00:aa:00:07", "--power", "ipmi://admin@10.0.0.12", "--power-password-file", file("passwd", "root:x:0\nalice:x:1\n")).want(t, 2, "more than one line")
	w.run("machine", "registered", "--state", "waiting").want(t, 0, "No bare machine is waiting")
	w.run("machine", "add", "r1-n02", "--mac", "52:54:00:aa:00:01", "--power", "wol").want(t, 2, "belongs to machine r1-n01")
	w.run("machine", "add", "fake-01", "--mac", "52:54:00:aa:00:05", "--power", "wol").want(t, 2, "a machine of provider fake has that name")

	both := file("both.csv", "name,mac,power,power-password-file\nr1-n03,nonsense,redfish://root@bmc3,"+filepath.Join(dir, "none")+"\n")
	w.run("machine", "import", both).want(t, 2, "r1-n03.nics", "r1-n03.power.password-file", "passwords cannot be read")
	bad := file("bad.csv", "name,mac,power,power-password-file\nr1-n03,52:54:00:aa:00:03,redfish://root@bmc3,"+filepath.Join(dir, "none")+"\n")
	w.run("machine", "import", bad).want(t, 2, "line 2", "cannot read .*none: no such file")
	half := file("half.csv", "name,mac,power\nr1-n03,52:54:00:aa:00:03,wol\nr1-n04,52:54:00:aa:00:01,wol\n")
	w.run("machine", "import", half).want(t, 2, "r1-n04: interface 52:54:00:aa:00:01 belongs to machine r1-n01")
	good := file("good.csv", "name,mac,power,power-password,rack\nr1-n03,52:54:00:aa:00:03,wol,,r1\nr1-n04,52:54:00:aa:00:04,redfish://root@bmc4,sesame,r1\n")
	w.run("machine", "import", good, "--dry-run").want(t, 0, "r1-n03 +added", "r1-n04 +added")
	r := w.run("machine", "registered")
	r.want(t, 0, "r1-n01 +approved +52:54:00:aa:00:01")
	if strings.Contains(r.out, "r1-n03") {
		t.Errorf("something was registered that was only tried, or by halves:\n%s", r.out)
	}
	w.run("machine", "import", good).want(t, 0, "r1-n03 +added", "r1-n04 +added")
	w.run("machine", "import", good).want(t, 0, "r1-n03 +unchanged", "r1-n04 +unchanged")

	// Off, and cut off, are proven by controllers and ports: none stands at two machines.
	w.run("machine", "add", "r1-n05", "--mac", "52:54:00:aa:00:06", "--power", "ipmi://admin@10.0.0.11", "--power-password-file", secret).want(t, 2, "controller 10.0.0.11 is that of machine r1-n01 already", "machine forget r1-n01")
	ports := "name,mac,power,power-password,switch,port,message-mac,message-switch,message-port\n"
	twice := file("twice.csv", ports+"r1-n05,52:54:00:aa:00:06,redfish://root@bmc5,sesame,s1,5,52:54:00:aa:01:06,s1,5\nr1-n06,52:54:00:aa:00:0a,redfish://root@bmc5,sesame,s1,5,,,\n")
	w.run("machine", "import", twice, "--dry-run").want(t, 2, "r1-n05: port 5 of switch s1 stands there twice", "r1-n06: controller bmc5 is that of machine r1-n05 already", "r1-n06: port 5 of switch s1 is that of machine r1-n05 already")
	once := file("once.csv", ports+"r1-n05,52:54:00:aa:00:06,redfish://root@bmc5,sesame,s1,5,,,\nr1-n06,52:54:00:aa:00:0a,redfish://root@bmc6,sesame,s1,6,,,\n")
	w.run("machine", "import", once).want(t, 0, "r1-n05 +added", "r1-n06 +added")
	// Two that were taken for each other change places in one file.
	swapped := file("swapped.csv", ports+"r1-n05,52:54:00:aa:00:06,redfish://root@bmc6,sesame,s1,6,,,\nr1-n06,52:54:00:aa:00:0a,redfish://root@bmc5,sesame,s1,5,,,\n")
	w.run("machine", "import", swapped, "--replace").want(t, 0, "r1-n05 +changed", "r1-n06 +changed")
	w.run("machine", "test", "r1-n05").want(t, 3, "r1-n05 is registered, and not taken in yet", "machine boots")
	w.run("machine", "drain", "r1-n0[5-7]").want(t, 3, "r1-n05 is registered, and not taken in yet", "no machine is called .r1-n07")
	w.run("machine", "forget", "r1-n0[5-6]").want(t, 0)

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
	w.run("machine", "registered", "--state", "waiting").want(t, 0, "m-525400aa0009 +waiting")
	w.run("machine", "add", "r1-n09", "--mac", "52:54:00:aa:00:09", "--power", "wol").want(t, 0, "r1-n09 +approved +it came by itself, as m-525400aa0009")
	w.run("machine", "registered", "-o", "json").want(t, 0, `"cores": 8`)
	w.run("machine", "forbid", "r1-n0[3,9]").want(t, 0, "r1-n03 +forbidden", "r1-n09 +forbidden")
	w.run("machine", "approve", "r1-n03").want(t, 0, "r1-n03 +approved")
	w.run("machine", "forget", "r1-n08,r1-n09").want(t, 3, "r1-n08: no bare machine is registered", "there is")
	w.run("machine", "forget", "r1-n09").want(t, 0, "r1-n09 +forgotten")
	w.run("machine", "discover").want(t, 2)
	w.run("machine", "registered", "--state", "wating").want(t, 2, "use waiting")
	w.run("machine", "discover", "r1-n08").want(t, 3, "no bare machine is registered")
	w.run("machine", "discover", "r1-n0[1,3]").want(t, 0, "r1-n01 +asked +it boots once", "r1-n03 +asked")
	w.run("machine", "discover", "r1-n03", "--wait", "--timeout", "50ms").want(t, 8, "r1-n03: not discovered after 50ms", "machine show r1-n03")
	told := make(chan error, 1)
	go func() {
		time.Sleep(100 * time.Millisecond)
		told <- s.Control.Told(t.Context(), "r1-n03", muster.Facts{Cores: 8, Memory: 64 << 30}, muster.TrustNetwork, time.Now().Add(time.Hour))
	}()
	w.run("machine", "discover", "r1-n03", "--wait").want(t, 0, "r1-n03 +discovered +8 cores, 64")
	if err := <-told; err != nil {
		t.Error(err)
	}
	w.run("machine", "fenced", "r1-n01").want(t, 2, "must be without power", "add --yes")
	w.run("machine", "fenced", "r1-n01", "--yes").want(t, 4, "r1-n01: nobody asks whether it is cut off", "muster machine show r1-n01")
	w.run("machine", "fenced", "r1-n08", "--yes").want(t, 3, "r1-n08: no bare machine is registered")
	err = s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		r, err := tx.Registration("r1-n01")
		if err != nil {
			return err
		}
		r.ByHand = &muster.ByHand{Asked: time.Now(), Why: "its controller is deaf"}
		if err := tx.PutRegistration(r, "waits for a human"); err != nil {
			return err
		}
		return tx.PutMachine(muster.Machine{ID: "r1-n01", Provider: "metal", Phase: muster.MachineNew}, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	w.run("machine", "show", "r1-n01").want(t, 0, "it waits for a human: its controller is deaf", "muster machine fenced r1-n01 --yes")
	w.run("machine", "fenced", "r1-n01", "--yes").want(t, 0, "r1-n01 +fenced +whoever waits for that goes on")
	w.run("machine", "fenced", "r1-n01", "--yes").want(t, 0, "r1-n01 +unchanged +said by ")

	all := w.run("machine", "registered", "-o", "json").out + w.run("events").out
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
