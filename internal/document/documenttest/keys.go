package documenttest

import (
	"regexp"
	"slices"
	"strings"
)

var snake = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// KeyFault says what is wrong with a key by the rules of docs/users/json.md; "": nothing is.
// number is whether its value is a number, whole whether that can only be a whole one.
func KeyFault(key string, number, whole bool) string {
	if !snake.MatchString(key) {
		return "is not in snake_case"
	}
	words := strings.Split(key, "_")
	last := words[len(words)-1]
	has := func(list ...string) bool { return slices.Contains(list, last) }
	switch {
	case !number:
	case last == "seconds" && len(words) > 1 && words[len(words)-2] == "per":
		return "is by second, not by seconds"
	case last == "seconds" && whole:
		return "is a duration in whole seconds: make it a muster.Duration"
	case len(words) > 1 && has("s", "ms", "us", "ns", "sec", "secs", "minutes", "hours", "days"):
		return "is a duration in another unit than seconds: make it a muster.Duration"
	case len(words) > 1 && has("kb", "mb", "gb", "kib", "mib", "gib"):
		return "is a size in another unit than bytes"
	case has("walltime", "retain", "took", "budget", "uptime", "timeout", "interval", "elapsed", "step", "expected", "ttl") && whole:
		return "is a duration: end it in _seconds"
	case has("memory", "disk", "size", "quota", "cache", "uncompressed", "rx", "tx"):
		return "is a size: end it in _bytes"
	case has("speed", "rate", "bandwidth"):
		return "is a speed: end it in _bps, _hz or _per_second"
	}
	return ""
}
