package inventory

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/muster-hpc/muster/internal/suggest"
)

// column is a column of a table of machines.
type column struct {
	name string
	// field is what it fills in, below the machine.
	field string
	// also are names that people give it, as folded writes them.
	also []string
}

// columns are those of a table, in any order; name, mac and power must be there.
func columns() []column {
	return []column{
		{"name", "name", []string{"machine", "machinename", "host", "hostname", "node", "nodename", "server", "servername"}},
		{"mac", "nics[0].mac", []string{"macaddress", "macaddr", "bootmac", "bootmacaddress", "managementmac", "managementmacaddress", "mgmtmac", "pxemac"}},
		{"message_mac", "nics[1].mac", []string{"messagemacaddress", "messagemacaddr", "mpimac"}},
		{"power", "power", []string{"poweraddress", "powercontrol", "bmc", "bmcaddress", "bmcip", "bmcurl", "bmchost"}},
		{"power_user", "power.user", []string{"powerusername", "poweraccount", "bmcuser", "bmcusername", "bmcaccount", "bmclogin"}},
		{"power_password", "power.password", []string{"bmcpassword"}},
		{"power_password_file", "power.password_file", []string{"bmcpasswordfile"}},
		{"power_key", "power.key", []string{"kg", "powerkg", "bmckey"}},
		{"power_key_file", "power.key_file", []string{"kgfile", "bmckeyfile"}},
		{"power_quirk", "power.quirk", []string{"quirk", "bmcquirk"}},
		{"power_certificate_sha256", "power.certificate_sha256", []string{
			"powercertificate", "powerfingerprint", "certificate", "certificatesha256", "fingerprint", "bmccertificate", "bmccertificatesha256", "bmcfingerprint",
		}},
		{"power_authority", "power.authority", []string{"authority", "bmcauthority", "bmcca"}},
		{"power_authority_file", "power.authority_file", []string{"authorityfile", "bmcauthorityfile", "bmccafile"}},
		{"power_boot_mode", "power.boot_mode", []string{"bootmode", "firmware"}},
		{"power_boot", "power.boot", []string{"boot", "bootprotocol"}},
		{"power_interface", "power.interface", nil},
		{"power_proves", "power.proves", nil},
		{"rack", "rack", []string{"rackname", "rackno", "racknumber", "cabinet"}},
		{"position", "position", []string{"rackposition", "rackunit", "slot", "unit", "u"}},
		{"chassis", "chassis", []string{"enclosure"}},
		{"class", "class", []string{"machineclass"}},
		{"service", "service", []string{"servicemachine", "servicenode"}},
		{"serial", "serial", []string{"serialno", "serialnr", "serialnumber", "sn", "servicetag"}},
		{"uuid", "uuid", []string{"systemuuid", "smbiosuuid"}},
		{"min_trust", "min_trust", []string{"minimumtrust", "trust"}},
		{"switch", "nics[0].switch", []string{"switchname", "managementswitch"}},
		{"port", "nics[0].port", []string{"switchport", "managementport"}},
		{"message_switch", "nics[1].switch", nil},
		{"message_port", "nics[1].port", []string{"messageswitchport"}},
	}
}

func columnNames() (list []string) {
	for _, c := range columns() {
		list = append(list, c.name)
	}
	return list
}

// folded is a name of a column without what people write differently: case, blanks and
// signs.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// columnOf is the column that a name in the first row means; false with the name of the one
// that it was probably meant to be, "" if there is none.
func columnOf(name string) (c column, near string, ok bool) {
	word := folded(name)
	var words []string
	means := map[string]column{}
	for _, c := range columns() {
		for _, w := range append(c.also, folded(c.name)) {
			words = append(words, w)
			means[w] = c
		}
	}
	if c, ok := means[word]; ok {
		return c, "", true
	}
	// A letter is near to much.
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) < 3 })
	return column{}, means[suggest.Of(word, words)].name, false
}

// cell is where a value of a table stands, with the column as spreadsheets name it.
func cell(line, column int) string {
	letters := ""
	for n := column + 1; n > 0; n = (n - 1) / 26 {
		letters = string(rune('A'+(n-1)%26)) + letters
	}
	return fmt.Sprintf("line %d, column %s", line, letters)
}
