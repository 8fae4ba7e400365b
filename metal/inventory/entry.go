package inventory

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/yamldoc"
)

// Entry is a machine of a file.
type Entry struct {
	Machine muster.Registration
	// Password is that of its management controller; Secret masks it where an entry
	// is printed. PasswordFile names a file that has it instead.
	Password     Secret
	PasswordFile string
	// PowerKey is the key K_G of an IPMI controller, as muster.ParsePowerKey reads it.
	// PowerKeyFile names a file that has it instead.
	PowerKey     Secret
	PowerKeyFile string
	// AuthorityFile names a file that has Machine.Power.Authority. Whoever reads it checks
	// the machine with CheckRead.
	AuthorityFile string
	// Called is what faults call it: its name, or its number in the file where it has none:
	// machines[3].
	Called string
	Place  string // in the file: line 12
	// places are those of fields that stand on lines of their own, by their path below the
	// machine: nics[1].mac.
	places map[string]string
	// told are the fields of which it was told already that they cannot be read.
	told []string
}

// Secret is a text that is never printed.
type Secret string

// String hides it.
func (Secret) String() string { return "(secret)" }

// GoString hides it from %#v, too.
func (Secret) GoString() string { return "(secret)" }

// stands notes where a field is.
func (e *Entry) stands(field, place string) {
	if e.places == nil {
		e.places = map[string]string{}
	}
	e.places[field] = place
}

// Told reports whether the file's faults say already that the field, or what it belongs to,
// cannot be read: whatever else is wrong with it is a consequence.
func (e *Entry) Told(field string) bool {
	return slices.ContainsFunc(e.told, func(of string) bool {
		rest, ok := strings.CutPrefix(field, of)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// At is where a field is in the file, or what it belongs to, by its path below the machine:
// nics[1].mac.
func (e *Entry) At(field string) string {
	for field != "" {
		if place, ok := e.places[field]; ok {
			return place
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return e.Place
}

// Limits of a file.
const (
	// MaxBytes is how large a file may be.
	MaxBytes    = 16 << 20
	maxMachines = 20000
	maxProblems = 50 // told at once
)

// Decode reads a file: a table when its name ends with .csv, .tsv or .txt, otherwise YAML (JSON
// is YAML). The error is EInvalid with all that is wrong; what could be read is returned beside
// it, so that more can be said of it.
func Decode(name string, data []byte) ([]Entry, error) {
	var f file
	text := decoded(data[:min(len(data), MaxBytes)])
	switch {
	case len(data) > MaxBytes:
		return nil, muster.Errorf(muster.EInvalid, "%s is larger than %d MiB", name, MaxBytes>>20).Because(muster.ReasonTooLarge).WithHint("split it")
	case bytes.HasPrefix(data, []byte("PK\x03\x04")): // a ZIP archive
		f.Wrong(muster.ReasonBadSyntax, "file", "", "open it and save it as CSV: its name ends with .csv", "it is a workbook of a spreadsheet program")
	case bytes.IndexByte(text, 0) >= 0:
		f.Wrong(muster.ReasonBadSyntax, "file", "", "save it as text in UTF-8; spreadsheet programs call it CSV UTF-8", "it has zero bytes, which no text in UTF-8 or UTF-16 has")
	case isTable(name):
		f.csv(text)
	default:
		f.yaml(text)
	}
	f.check()
	if len(f.Problems) > 0 {
		e := muster.Errorf(muster.EInvalid, "%s rejected: %s", name, count(len(f.Problems))).Because(muster.ReasonHasProblems).WithHint("nothing was changed; fix the errors and retry")
		return f.entries, e.Listing(f.Problems[:min(len(f.Problems), maxProblems)])
	}
	return f.entries, nil
}

// isTable reports whether a file of this name is a table: Excel saves text that is separated
// by tabs as .txt.
func isTable(name string) bool {
	return slices.Contains([]string{".csv", ".tsv", ".txt"}, strings.ToLower(filepath.Ext(name)))
}

func count(n int) string {
	if n == 1 {
		return "1 error"
	}
	return fmt.Sprintf("%d errors", n)
}

// file gathers what is read, and what is wrong with it.
type file struct {
	yamldoc.Reader
	entries []Entry
}

// check looks at the machines and at what they have in common.
func (f *file) check() {
	names, claims := map[muster.MachineID]string{}, muster.Claims[int]{}
	for i := range f.entries {
		e := &f.entries[i]
		m := &e.Machine
		e.Called = yamldoc.Clip(cmp.Or(string(m.ID), fmt.Sprintf("machines[%d]", i)))
		for j, n := range m.NICs {
			if mac, err := muster.ParseMAC(n.MAC); err == nil {
				m.NICs[j].MAC = mac
			}
		}
		m.UUID = strings.ToLower(m.UUID)
		for _, p := range e.problems() {
			if e.Told(p.Field) {
				continue
			}
			p.Field, p.Place = e.Called+"."+p.Field, e.At(p.Field)
			f.Problems = append(f.Problems, p)
		}
		const change = "change the file: one of the two is wrong"
		if first, twice := names[m.ID]; twice && m.ID != "" {
			f.Wrong(muster.ReasonGivenTwice, e.Called+".name", e.At("name"), change, "the machine of %s has this name, too", first)
		} else {
			names[m.ID] = e.At("name")
		}
		for _, c := range claims.Add(*m, i) {
			if c.Owner == i {
				f.Wrong(muster.ReasonGivenTwice, e.Called+"."+c.Field, e.At(c.Field), c.Hint, "%s stands there twice", c.What)
				continue
			}
			of := &f.entries[c.Owner]
			f.Wrong(muster.ReasonGivenTwice, e.Called+"."+c.Field, e.At(c.Field), c.Hint+"; "+change, "%s is that of machine %s, too: %s", c.What, of.Called, of.At(c.OwnerField))
		}
		if e.Password != "" && e.PasswordFile != "" {
			f.Wrong(muster.ReasonContradiction, e.Called+".power", e.At("power"), "keep one of them", "there are a password and a file with one")
		}
		if e.PowerKey != "" && e.PowerKeyFile != "" {
			f.Wrong(muster.ReasonContradiction, e.Called+".power", e.At("power"), "keep one of them", "there are a key and a file with one")
		}
		if m.Power.Authority != "" && e.AuthorityFile != "" {
			f.Wrong(muster.ReasonContradiction, e.Called+".power", e.At("power"), "keep one of them", "there are an authority and a file with one")
		}
	}
	if len(f.entries) == 0 && len(f.Problems) == 0 {
		f.Wrong(muster.ReasonRequired, "machines", "", "list machines: see muster machine import --help", "it contains no machines")
	}
	if len(f.entries) > maxMachines {
		f.Wrong(muster.ReasonTooMany, "machines", "", fmt.Sprintf("at most %d in a file", maxMachines), "%d machines are too many", len(f.entries))
	}
}

// problems are those of the machine, as far as it is known before the files that it names
// are read.
func (e *Entry) problems() (list []muster.Problem) {
	for _, p := range e.Machine.Check() {
		if e.AuthorityFile != "" && p.Field == "power.certificate_sha256" && p.Reason == muster.ReasonRequired {
			continue // the file says whose certificate it is
		}
		list = append(list, p)
	}
	if e.AuthorityFile != "" && e.Machine.Power.Kind != muster.PowerRedfish {
		list = append(list, muster.Problem{
			Field: "power.authority_file", Reason: muster.ReasonContradiction, Message: "only redfish has an authority", Hint: "remove it",
		})
	}
	for _, p := range e.Machine.Power.CheckPassword([]byte(e.Password)) {
		p.Field = "power.password"
		list = append(list, p)
	}
	for _, p := range e.Machine.Power.CheckPowerKey(string(e.PowerKey)) {
		p.Field = "power.key"
		list = append(list, p)
	}
	if e.PowerKeyFile != "" && e.Machine.Power.Kind != muster.PowerIPMI {
		list = append(list, muster.Problem{
			Field: "power.key_file", Reason: muster.ReasonContradiction, Message: "only ipmi has a key", Hint: "remove it",
		})
	}
	return list
}

// CheckRead returns what is wrong with what was read of the files that the entry names.
// Its fields are those that named the files.
func (e Entry) CheckRead(password, key, authority string) (list []muster.Problem) {
	add := func(field string, p muster.Problem) {
		p.Field, p.Place = e.Called+"."+field, e.At(field)
		list = append(list, p)
	}
	if e.PasswordFile != "" {
		for _, p := range e.Machine.Power.CheckPassword([]byte(password)) {
			add("power.password_file", p)
		}
	}
	if e.PowerKeyFile != "" {
		for _, p := range e.Machine.Power.CheckPowerKey(key) {
			add("power.key_file", p)
		}
	}
	if e.AuthorityFile != "" {
		to := e.Machine.Power
		to.Authority = authority
		for _, p := range to.Check() {
			if p.Field == "power.authority" {
				add("power.authority_file", p)
			}
		}
	}
	return list
}

// switched fills in how a machine is switched, as it is written in one word.
func (f *file) switched(e *Entry, field, place, value string) {
	p, err := muster.ParsePowerAddress(value)
	if err != nil {
		e.told = append(e.told, "power")
		f.wrong(field, place, err)
		return
	}
	e.Machine.Power.Kind, e.Machine.Power.Address, e.Machine.Power.System = p.Kind, p.Address, p.System
	if u := e.Machine.Power.User; u != "" && p.User != "" && u != p.User {
		f.Wrong(muster.ReasonContradiction, field, place, "name the account once", "the account is %.64q here, and %.64q elsewhere", p.User, u)
	}
	e.Machine.Power.User = cmp.Or(p.User, e.Machine.Power.User)
}

// wrong reports an error at a place.
func (f *file) wrong(field, place string, err error) {
	p := muster.Problem{Field: field, Place: place, Message: err.Error()}
	var e *muster.Error
	if errors.As(err, &e) {
		p.Reason, p.Message, p.Hint = e.Reason, e.Message, e.Hint
	}
	f.Problems = append(f.Problems, p)
}

func (f *file) truth(field, place, value string) bool {
	switch strings.ToLower(value) {
	case "true", "yes", "1":
		return true
	case "", "false", "no", "0":
	default:
		f.Bad(field, place, "write yes or no", "%q is neither yes nor no", yamldoc.Clip(value))
	}
	return false
}

// interfaceOf is the interface of a machine for a use, made where there is none.
func interfaceOf(m *muster.Registration, use string) *muster.RegisteredNIC {
	i := slices.IndexFunc(m.NICs, func(n muster.RegisteredNIC) bool { return n.Use == use })
	if i < 0 {
		i = len(m.NICs)
		m.NICs = append(m.NICs, muster.RegisteredNIC{Use: use})
	}
	return &m.NICs[i]
}
