package topology

import (
	"fmt"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/internal/yamldoc"
)

// Link joins two stands: A-B=1Gb/s,delay=1ms.
type Link struct {
	A, B   string
	Rate   int64 // of all its cables together, in bits/s each way
	Cables int   // 0: 1
	Delay  time.Duration
	text   string
}

// longestDelay is more than to the other side of the earth and back.
const longestDelay = time.Second

// ParseLink reads A-B=RATE[,delay=TIME], in which the rate may be that of several cables: 4x1Gb/s.
// The error is EInvalid and lists everything that is wrong.
func ParseLink(text string) (Link, error) {
	l := Link{text: yamldoc.Clip(text)}
	f := &file{}
	field := "link " + l.text
	parts := strings.Split(text, ",")
	ends, rate, ok := strings.Cut(parts[0], "=")
	l.A, l.B, _ = strings.Cut(ends, "-")
	if !ok || !CanJoin(l.A) || !CanJoin(l.B) || l.A == l.B {
		f.Bad(field, "", "name two leaves, or a leaf and a switch, by letters, digits, dots and underscores: A-B=1Gb/s", "%q does not name two that are joined, and a rate", yamldoc.Clip(parts[0]))
	} else {
		l.Rate, l.Cables = f.uplink(field, "", rate)
	}
	seen := map[string]bool{}
	for _, p := range parts[1:] {
		key, value, _ := strings.Cut(p, "=")
		switch {
		case key != "delay":
			f.Wrong(muster.ReasonUnknownField, field, "", "write delay=TIME", "%q is not known of links", yamldoc.Clip(key))
		case seen[key]:
			f.Wrong(muster.ReasonGivenTwice, field, "", "keep one", "delay is given twice")
		default:
			d, err := duration.Parse(value)
			if err != nil || d < 0 || d > longestDelay {
				f.Wrong(muster.ReasonOutOfRange, field, "", "write a time from 0 to 1s, such as 1ms", "%q is not the delay of a link", yamldoc.Clip(value))
			}
			l.Delay = d
		}
		seen[key] = true
	}
	if len(f.Problems) > 0 {
		return Link{}, muster.Errorf(muster.EInvalid, "the link %q has problems", l.text).Because(muster.ReasonHasProblems).Listing(f.Problems)
	}
	return l, nil
}

// CanJoin reports whether a stand of this name can be in a link: those have no dashes, because a dash is
// between them.
func CanJoin(name string) bool { return standName.MatchString(name) && !strings.Contains(name, "-") }

// String is the link as ParseLink reads it.
func (l Link) String() string {
	out := fmt.Sprintf("%s-%s=%s", l.A, l.B, strings.ReplaceAll(UplinkText(muster.Stand{Uplink: l.Rate, Cables: l.Cables}), " ", ""))
	if l.Delay > 0 {
		out += ",delay=" + delayText(l.Delay)
	}
	return out
}
