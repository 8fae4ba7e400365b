package boot

import (
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Settings are what the kernel's command line says.
type Settings struct {
	// Server is https://ADDRESS:PORT.
	Server string
	// Authority is the SHA-256 of the certificate of the server's authority.
	Authority [32]byte
	// Boot is the number of this boot.
	Boot string
	// MAC is that of the NIC that the firmware booted from; "" if nobody said.
	MAC string
	// Channel is the serial port at which a virtual machine asks its host for its task; "": it asks
	// the server, over the network.
	Channel string
	// Blacklist are modules that are not loaded for a device.
	Blacklist []string
}

// maxCmdline is more than any kernel's command line.
const maxCmdline = 64 << 10

// ParseCmdline reads a kernel's command line: muster.server, muster.ca, muster.boot
// and either muster.mac or BOOTIF, as boot loaders write it (01-52-54-00-...); or
// muster.channel alone.
// What else is there is the kernel's or the image's. The error is EInvalid and
// names everything that is missing or wrong.
func ParseCmdline(line string) (Settings, error) {
	var s Settings
	var problems []muster.Problem
	bad := func(field, text string) { problems = append(problems, muster.Problem{Field: field, Message: text}) }
	said := map[string]string{}
	if len(line) > maxCmdline {
		line = line[:maxCmdline]
	}
	for _, w := range words(line) {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "modprobe.blacklist", "module_blacklist":
			for name := range strings.SplitSeq(value, ",") {
				if name != "" {
					s.Blacklist = append(s.Blacklist, canonical(name))
				}
			}
		case "muster.server", "muster.ca", "muster.boot", "muster.mac", "muster.channel", "BOOTIF":
			if old, twice := said[key]; twice && old != value {
				bad(key, "is said twice, differently")
			}
			said[key] = value
		}
	}
	if s.Channel = said["muster.channel"]; s.Channel != "" {
		if !validChannel(s.Channel) {
			bad("muster.channel", "is not a serial port, such as ttyS1")
		}
	} else {
		s.server(said, bad)
	}
	for _, key := range []string{"muster.mac", "BOOTIF"} {
		if value, ok := said[key]; ok && s.MAC == "" && value != "" {
			if s.MAC = parseMAC(value); s.MAC == "" {
				bad(key, "is not a MAC address")
			}
		}
	}
	if len(problems) > 0 {
		e := muster.Errorf(muster.EInvalid, "the kernel's command line does not say what this machine is to do").
			WithHint("the boot server writes it: start this machine over the network of the Muster server")
		return Settings{}, e.Listing(problems)
	}
	slices.Sort(s.Blacklist)
	s.Blacklist = slices.Compact(s.Blacklist)
	return s, nil
}

// server reads how a machine reaches its server.
func (s *Settings) server(said map[string]string, bad func(field, text string)) {
	u, err := url.Parse(said["muster.server"])
	switch {
	case said["muster.server"] == "":
		bad("muster.server", "is missing")
	case err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		bad("muster.server", "is not of the form https://ADDRESS:PORT")
	default:
		s.Server = "https://" + u.Host
	}
	sum, err := hex.DecodeString(strings.TrimPrefix(said["muster.ca"], "sha256:"))
	switch {
	case said["muster.ca"] == "":
		bad("muster.ca", "is missing")
	case err != nil || len(sum) != len(s.Authority):
		bad("muster.ca", "is not of the form sha256:64 HEXADECIMAL DIGITS")
	default:
		copy(s.Authority[:], sum)
	}
	s.Boot = said["muster.boot"]
	if s.Boot == "" {
		bad("muster.boot", "is missing")
	} else if !wire.ValidBoot(s.Boot) {
		bad("muster.boot", "is not a boot number")
	}
}

// words cuts a line at spaces that are not within quotes, which it removes.
func words(line string) []string {
	var out []string
	var w strings.Builder
	quoted, some := false, false
	for _, r := range line {
		switch {
		case r == '"':
			quoted, some = !quoted, true
		case !quoted && (r == ' ' || r == '\t' || r == '\n'):
			if some {
				out = append(out, w.String())
				w.Reset()
				some = false
			}
		default:
			w.WriteRune(r)
			some = true
		}
	}
	if some {
		out = append(out, w.String())
	}
	return out
}

// parseMAC reads a MAC address with colons or dashes, and with the type of
// hardware (01 for Ethernet) before it. "" is none.
func parseMAC(s string) string {
	s = strings.ToLower(strings.ReplaceAll(s, "-", ":"))
	if len(s) == 20 && strings.HasPrefix(s, "01:") {
		s = s[3:]
	}
	if !wire.ValidMAC(s) {
		return ""
	}
	return s
}
