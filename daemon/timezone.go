package daemon

import (
	"os"
	"strings"
	"time"

	muster "github.com/muster-hpc/muster"
)

// HostTimeZone is the name of this host's time zone, such as Europe/Berlin; "" where the host
// does not name one.
func HostTimeZone() string {
	if zone := strings.TrimPrefix(os.Getenv("TZ"), ":"); zone != "" {
		return known(zone)
	}
	if link, err := os.Readlink("/etc/localtime"); err == nil {
		if _, zone, ok := strings.Cut(link, "zoneinfo/"); ok {
			return known(zone)
		}
	}
	text, err := os.ReadFile("/etc/timezone")
	if err != nil {
		return ""
	}
	return known(strings.TrimSpace(string(text)))
}

// known is a zone that programs know by its name, or "".
func known(zone string) string {
	if CheckTimeZone(zone) != nil {
		return ""
	}
	return zone
}

// CheckTimeZone refuses what is no name of a time zone: EInvalid.
func CheckTimeZone(zone string) error {
	_, err := time.LoadLocation(zone)
	if err != nil || zone == "" || zone == "Local" {
		return muster.Errorf(muster.EInvalid, "the time zone %q is not known", zone).Because(muster.ReasonBadValue).
			WithHint("write a zone such as Europe/Berlin or UTC")
	}
	return nil
}
