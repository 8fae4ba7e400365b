package inventory

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/yamldoc"
)

// csv reads a table with names of columns in its first row. Lines that begin with #
// are remarks; a semicolon or a tab may stand for the comma. Rows and columns that are empty
// throughout are nothing: spreadsheets save them.
func (f *file) csv(data []byte) {
	comma, data, wrong := separated(data)
	if wrong != nil {
		f.Problems = append(f.Problems, *wrong)
		return
	}
	r := csv.NewReader(bytes.NewReader(data))
	// A reader that trims what leads a value takes an empty one between tabs for that.
	r.Comma, r.Comment, r.TrimLeadingSpace, r.FieldsPerRecord = comma, '#', comma != '\t', -1
	var head *header
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
		switch {
		case isEmpty(row) || strings.HasPrefix(row[0], "#"): // a remark may stand in quotes
		case head == nil:
			if head = f.head(row, line); !slices.ContainsFunc(head.columns, func(c column) bool { return c.name != "" }) {
				return // this is no row of names, and there is no sense in reading on
			}
		case len(f.entries) > maxMachines:
			return
		default:
			f.row(head, row, line)
		}
	}
}

// header is the row of names.
type header struct {
	columns []column // those without a name are not known, or empty
	unnamed []bool   // no name stands there, and it was not told yet
	// lacks are the fields that machines will lack because of what was told of columns.
	lacks []string
}

// head looks at the names of columns.
func (f *file) head(row []string, line int) *header {
	h := header{columns: make([]column, len(row)), unnamed: make([]bool, len(row))}
	first := map[string]int{}
	for i, name := range row {
		if name = plain(name); name == "" {
			h.unnamed[i] = true
			continue
		}
		c, near, ok := columnOf(name)
		if !ok {
			hint := "there are: " + strings.Join(columnNames(), ", ")
			if near != "" {
				hint = "did you mean " + near + "?"
			}
			f.Wrong(muster.ReasonUnknownField, yamldoc.Clip(name), cell(line, i), hint, "there is no such column")
			continue
		}
		if before, twice := first[c.name]; twice {
			f.Wrong(muster.ReasonGivenTwice, c.name, cell(line, i), "keep one", "there are two such columns: %q and %q", yamldoc.Clip(plain(row[before])), yamldoc.Clip(name))
			continue
		}
		first[c.name], h.columns[i] = i, c
	}
	for _, need := range []struct{ column, lacks string }{{"name", "name"}, {"mac", "nics"}, {"power", "power"}} {
		if _, ok := first[need.column]; !ok {
			f.Wrong(muster.ReasonRequired, need.column, fmt.Sprintf("line %d", line), "name the columns in the first row, with commas, semicolons or tabs between them: name,mac,power,...", "the column is missing")
			h.lacks = append(h.lacks, need.lacks)
		}
	}
	return &h
}

func (f *file) unreadable(err error) {
	place := ""
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		place, err = fmt.Sprintf("line %d", parse.Line), parse.Err
	}
	f.Wrong(muster.ReasonBadSyntax, "file", place, "save it as comma-separated values, in UTF-8", "it cannot be read: %v", err)
}

// row reads a machine.
func (f *file) row(h *header, row []string, line int) {
	width := len(h.columns)
	for width > 0 && h.unnamed[width-1] {
		width--
	}
	if len(row) < width {
		f.Wrong(muster.ReasonBadSyntax, "machines", fmt.Sprintf("line %d", line), "leave values empty that there are not, with a separator for each", "%d values stand under %d columns", len(row), width)
		return
	}
	e := Entry{
		Place: fmt.Sprintf("line %d", line), told: slices.Clone(h.lacks),
		Machine: muster.Registration{NICs: []muster.RegisteredNIC{{Use: muster.UseManagement}}},
	}
	for i, raw := range row {
		value := plain(raw)
		if i < len(h.columns) && h.columns[i].name != "" {
			e.stands(h.columns[i].field, cell(line, i)) // where something is missing, too
		}
		switch {
		case value == "":
		case i >= len(h.columns):
			f.Wrong(muster.ReasonBadSyntax, "machines", cell(line, i), "quote values that hold a separator", "%d values stand under %d columns", len(row), width)
			return
		case h.unnamed[i]:
			h.unnamed[i] = false // told once
			f.Wrong(muster.ReasonRequired, "machines", cell(line, i), "name the column in the first row, or empty it", "a value stands in a column that has no name")
		case h.columns[i].name != "":
			if h.columns[i].name == "power_password" {
				e.Password = Secret(raw) // its blanks count
				continue
			}
			f.value(&e, h.columns[i].name, cell(line, i), value)
		}
	}
	f.entries = append(f.entries, e)
}

// value fills in what stands in a column.
func (f *file) value(e *Entry, name, place, value string) {
	m := &e.Machine
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
		f.switched(e, "power", place, value)
	case "power_user":
		if u := m.Power.User; u != "" && u != value {
			f.Wrong(muster.ReasonContradiction, "power_user", place, "name the account once", "the account is %.64q here, and %.64q in power", value, u)
		}
		m.Power.User = value
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
		m.MinTrust = muster.Trust(strings.ToLower(value))
	}
}

// isEmpty reports whether nothing stands in a row.
func isEmpty(row []string) bool {
	return !slices.ContainsFunc(row, func(value string) bool { return plain(value) != "" })
}

// plain is a value without blanks around it, and with none that only look like one: tables
// copied from pages and mails have blanks that do not break, or have no width.
func plain(value string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\u200b' || r == '\u2060' || r == '\ufeff':
			return -1
		case unicode.IsSpace(r) && r != '\n': // a certificate has lines
			return ' '
		}
		return r
	}, value))
}

// separators may stand between values.
const separators = ",;\t"

// separated returns what stands between values, and the table without the line sep=; with
// which Excel says so: the line stays empty, so that others keep their numbers. Without that
// line it is the separator of which the first line that is no remark has most, outside of
// quotes.
func separated(data []byte) (rune, []byte, *muster.Problem) {
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	said := strings.ToLower(strings.Trim(strings.ReplaceAll(string(first), `"`, ""), " "))
	if sep, ok := strings.CutPrefix(said, "sep="); ok {
		if len(sep) > 1 {
			sep = sep[:1] + strings.Trim(sep[1:], separators) // it was saved again, with as many columns as the table has
		}
		if len(sep) != 1 || !strings.Contains(separators, sep) {
			return 0, nil, &muster.Problem{
				Field: "file", Place: "line 1", Reason: muster.ReasonBadSyntax, Message: "sep= names no separator that can be read",
				Hint: "save it with commas, semicolons or tabs between values",
			}
		}
		return rune(sep[0]), append([]byte("\n"), rest...), nil
	}
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' || bytes.HasPrefix(line, []byte(`"#`)) {
			continue
		}
		quoted, count := false, map[rune]int{}
		for _, r := range string(line) {
			if r == '"' {
				quoted = !quoted
			}
			if !quoted && strings.ContainsRune(separators, r) {
				count[r]++
			}
		}
		best := ','
		for _, c := range separators {
			if count[c] > count[best] {
				best = c
			}
		}
		return best, data, nil
	}
	return ',', data, nil
}
