package inventory

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// columns are the columns of a CSV file, in any order; name, mac and power must be
// there.
func columns() []string {
	return []string{
		"name", "mac", "message_mac", "power", "power_user", "power_password", "power_password_file", "power_key", "power_key_file", "power_quirk", "power_certificate_sha256",
		"power_authority", "power_authority_file", "power_boot_mode", "power_boot", "power_interface", "power_proves",
		"rack", "position", "chassis", "class", "service", "serial", "uuid", "min_trust",
		"switch", "port", "message_switch", "message_port",
	}
}

// csv reads a table with names of columns in its first row. Lines that begin with #
// are remarks; a semicolon or a tab may stand for the comma.
func (f *file) csv(data []byte) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // as spreadsheets begin a file
	r := csv.NewReader(bytes.NewReader(data))
	r.Comma, r.Comment, r.TrimLeadingSpace, r.FieldsPerRecord = separator(data), '#', true, -1
	head, err := r.Read()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			f.unreadable(err)
		}
		return
	}
	told, ok := f.head(r, head)
	if !ok {
		return
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			f.unreadable(err)
			return
		}
		line, _ := r.FieldPos(0)
		place := fmt.Sprintf("line %d", line)
		if len(row) != len(head) {
			hint := "quote values that hold a comma"
			if len(row) < len(head) {
				hint = "leave values empty that there are not, with a comma for each"
			}
			f.Wrong(muster.ReasonBadSyntax, "machines", place, hint, "%d values stand under %d columns", len(row), len(head))
			continue
		}
		if len(f.entries) > maxMachines {
			return
		}
		f.row(head, row, place, told)
	}
}

// head looks at the names of columns, and writes them as they are known. It returns
// what machines will lack because of what was told of columns; false: this is no row of
// names, and there is no sense in reading on.
func (f *file) head(r *csv.Reader, head []string) (told []string, ok bool) {
	line, _ := r.FieldPos(0)
	place := fmt.Sprintf("line %d", line)
	for i, name := range head {
		head[i] = strings.ToLower(strings.TrimSpace(name))
		switch {
		case !slices.Contains(columns(), head[i]):
			f.Unknown(head[i], place, columns())
		case slices.Contains(head[:i], head[i]):
			f.Wrong(muster.ReasonGivenTwice, head[i], place, "keep one", "there are two such columns")
			fallthrough
		default:
			ok = true
		}
	}
	for _, need := range []struct{ column, lacks string }{{"name", "name"}, {"mac", "nics"}, {"power", "power"}} {
		if !slices.Contains(head, need.column) {
			f.Wrong(muster.ReasonRequired, need.column, place, "name the columns in the first row, with commas, semicolons or tabs between them: name,mac,power,...", "the column is missing")
			told = append(told, need.lacks)
		}
	}
	return told, ok
}

func (f *file) unreadable(err error) {
	place := ""
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		place, err = fmt.Sprintf("line %d", parse.Line), parse.Err
	}
	f.Wrong(muster.ReasonBadSyntax, "file", place, "save it as comma-separated values, in UTF-8", "it cannot be read: %v", err)
}

func (f *file) row(head, row []string, place string, told []string) {
	e := Entry{Place: place, told: slices.Clone(told), Machine: muster.Registration{NICs: []muster.RegisteredNIC{{Use: muster.UseManagement}}}}
	m := &e.Machine
	for i, name := range head {
		value := strings.TrimSpace(row[i])
		if value == "" {
			continue
		}
		switch name {
		case "name":
			m.ID = muster.MachineID(value)
		case "mac":
			interfaceOf(m, muster.UseManagement).MAC = value
		case "switch":
			interfaceOf(m, muster.UseManagement).Switch = value
		case "port":
			interfaceOf(m, muster.UseManagement).Port = value
		case "message_mac":
			interfaceOf(m, muster.UseMessage).MAC = value
		case "message_switch":
			interfaceOf(m, muster.UseMessage).Switch = value
		case "message_port":
			interfaceOf(m, muster.UseMessage).Port = value
		case "power":
			f.switched(&e, "power", place, value)
		case "power_user":
			m.Power.User = value
		case "power_password":
			e.Password = Secret(row[i])
		case "power_password_file":
			e.PasswordFile = value
		case "power_key":
			e.PowerKey = Secret(value)
		case "power_key_file":
			e.PowerKeyFile = value
		case "power_quirk":
			m.Power.Quirk = value
		case "power_certificate_sha256":
			m.Power.CertificateSHA256 = muster.CanonicalSHA256(value)
		case "power_authority":
			m.Power.Authority = value
		case "power_authority_file":
			e.AuthorityFile = value
		case "power_boot_mode":
			m.Power.BootMode = muster.BootMode(strings.ToLower(value))
		case "power_boot":
			m.Power.Boot = muster.BootProtocol(strings.ToLower(value))
		case "power_interface":
			m.Power.Interface = value
		case "power_proves":
			m.Power.Proves = f.truth("power_proves", place, value)
		case "rack":
			m.Rack = value
		case "position":
			m.Position = value
		case "chassis":
			m.Chassis = value
		case "class":
			m.Class = value
		case "service":
			m.Service = f.truth("service", place, value)
		case "serial":
			m.Serial = value
		case "uuid":
			m.UUID = value
		case "min_trust":
			m.MinTrust = muster.Trust(value)
		}
	}
	f.entries = append(f.entries, e)
}

// separator is the one of comma, semicolon and tab that the first line that is no
// remark has most of.
func separator(data []byte) rune {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		best, most := ',', bytes.Count(line, []byte(","))
		for _, c := range ";\t" {
			if n := bytes.Count(line, []byte(string(c))); n > most {
				best, most = c, n
			}
		}
		return best
	}
	return ','
}
