package inventory_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/metal/inventory"
)

// inUTF16 is a text as Excel saves "Unicode text".
func inUTF16(text string, low, high int) string {
	b := []byte{0, 0}
	b[low], b[high] = 0xff, 0xfe
	for _, u := range utf16.Encode([]rune(text)) {
		unit := []byte{0, 0}
		unit[low], unit[high] = byte(u), byte(u>>8)
		b = append(b, unit...)
	}
	return string(b)
}

// One table, as people and programs save it, is the same machine.
func TestTablesAsTheyAreSaved(t *testing.T) {
	t.Parallel()
	const plain = "name,mac,power,rack\na,52:54:00:aa:00:02,wol,r1\n"
	for name, text := range map[string]string{
		"plain":                         plain,
		"empty columns and rows":        "name,mac,power,rack,,\n,,,,,\na,52:54:00:aa:00:02,wol,r1,,\n,,,,,\n",
		"empty column between":          "name,,mac,power,rack\na,,52:54:00:aa:00:02,wol,r1\n",
		"separators behind some rows":   "name;mac;power;rack\na;52:54:00:aa:00:02;wol;r1;;;\n;;;\n",
		"separators behind the names":   "name;mac;power;rack;;;\na;52:54:00:aa:00:02;wol;r1\n",
		"empty rows before":             ",,,\n   \nname,mac,power,rack\na,52:54:00:aa:00:02,wol,r1\n  \n,,\n",
		"sep=":                          "sep=;\r\nname;mac;power;rack\r\na;52:54:00:aa:00:02;wol;r1\r\n",
		"sep= in quotes, saved again":   "\"sep=,\",,,\nname,mac,power,rack\na,52:54:00:aa:00:02,wol,r1\n",
		"sep= as a tab":                 "sep=\t\nname\tmac\tpower\track\na\t52:54:00:aa:00:02\twol\tr1\n",
		"tabs with empty values":        "name\tserial\tmac\tpower\track\na\t\t52:54:00:aa:00:02\twol\tr1\n",
		"lines end with CR":             strings.ReplaceAll(plain, "\n", "\r"),
		"lines end with CRLF":           strings.ReplaceAll(plain, "\n", "\r\n"),
		"UTF-8 with its mark":           "\xef\xbb\xbf" + plain,
		"UTF-16, little end first":      inUTF16(strings.ReplaceAll(plain, ",", "\t"), 0, 1),
		"UTF-16, big end first":         inUTF16(plain, 1, 0),
		"UTF-16 unmarked, little end":   inUTF16(plain, 0, 1)[2:],
		"UTF-16 unmarked, big end":      inUTF16("# Schr\u00e4nke, \u5de6\n"+plain, 1, 0)[2:],
		"Windows-1252":                  "# Schr\xe4nke \x96 links\nname,mac,power,rack\na,52:54:00:aa:00:02,wol,r1\n",
		"a remark in quotes":            "\"# first; second; third; fourth\",,,\nname,mac,power,rack\na,52:54:00:aa:00:02,wol,r1\n",
		"blanks that do not break":      "name,mac\u00a0,power,rack\n\u00a0a\u00a0,\ufeff52:54:00:aa:00:02\u00a0,wol\u202f,r1\n",
		"names as people write them":    "Host Name,MAC address,BMC,Rack No.\na,52:54:00:aa:00:02,wol,r1\n",
		"names with hyphens, in quotes": "\"NAME\",\"Mac-Address\",\"Power\nControl\",\"RACK\"\na,52:54:00:aa:00:02,wol,r1\n",
	} {
		list, err := inventory.Decode("rack.CSV", []byte(text))
		if err != nil || len(list) != 1 {
			t.Errorf("%s: %d machines, %v", name, len(list), err)
			continue
		}
		m := list[0].Machine
		if got := fmt.Sprint(m.ID, m.NICs, m.Power, m.Rack); got != "a[{52:54:00:aa:00:02 management  }] wolr1" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, name := range []string{"rack.txt", "rack.tsv"} {
		if _, err := inventory.Decode(name, []byte(plain)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each of what is wrong with a table stands at its cell.
func TestFaultsOfTables(t *testing.T) {
	t.Parallel()
	const row = "52:54:00:aa:00:02,wol"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a value without a name":   {"name,mac,power,,\na," + row + ",,x\nb,52:54:00:aa:00:03,wol,,y\n", []string{"machines required line 2, column E"}},
		"a value behind all":       {"name,mac,power\na," + row + ",,x\n", []string{"machines bad-syntax line 2, column E"}},
		"one column by two names":  {"name,mac,power,Serial No.,serial number\na," + row + ",x,y\n", []string{"serial given-twice line 1, column E"}},
		"a slip":                   {"name,mac,power,Serail Number\na," + row + ",x\n", []string{"Serail Number unknown-field line 1, column D"}},
		"an unknown separator":     {"sep=x\nnamexmacxpower\n", []string{"file bad-syntax line 1"}},
		"a workbook":               {"PK\x03\x04...", []string{"file bad-syntax"}},
		"lines keep their numbers": {"sep=;\n# one\n\nname;mac;power\na;52:54:00:aa:00:02;wlo\n", []string{"power bad-power-address line 5, column C"}},
		"a controller alone":       {"name,mac,BMC\na,52:54:00:aa:00:02,10.9.0.5\n", []string{"power bad-power-address line 2, column C"}},
	} {
		_, err := inventory.Decode("x.csv", []byte(c.text))
		if got := errortest.Problems(errortest.Listed(err)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	_, err := inventory.Decode("x.csv", []byte("name,mac,power,Serail Number\na,52:54:00:aa:00:02,wol,x\n"))
	if list := errortest.Listed(err); len(list) != 1 || list[0].Hint != "did you mean serial?" {
		t.Errorf("%+v", list)
	}
	_, err = inventory.Decode("x.csv", []byte("name,mac,BMC\na,52:54:00:aa:00:02,10.9.0.5\n"))
	if list := errortest.Listed(err); len(list) != 1 || !strings.Contains(list[0].Hint, "ipmi://USER@10.9.0.5") {
		t.Errorf("%+v", list)
	}
}

// A password keeps its blanks, also those that do not break.
func TestPasswordsOfTables(t *testing.T) {
	t.Parallel()
	list, err := inventory.Decode("x.csv", []byte("name,mac,power,power password\na,52:54:00:aa:00:02,script:///x,\" a\u00a0b \"\n"))
	if err != nil || len(list) != 1 || string(list[0].Password) != " a\u00a0b " {
		t.Errorf("%+v, %v", list, err)
	}
}

// The table of the guide is one that can be read, and shows what it says of its columns.
func TestTableOfTheGuide(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operators/first-rack.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "```\nname,mac,")
	table, _, closed := strings.Cut("name,mac,"+table, "```")
	if !found || !closed {
		t.Fatal("there is no table in it")
	}
	list, err := inventory.Decode("rack.csv", []byte(table))
	if err != nil || len(list) != 2 || list[0].PasswordFile == "" || list[1].Machine.Power.Kind != muster.PowerWOL || list[1].Machine.Position == "" {
		t.Errorf("%+v, %v", list, errortest.Listed(err))
	}
}
