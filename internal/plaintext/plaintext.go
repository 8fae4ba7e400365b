// Package plaintext writes numbers of things as sentences have them.
package plaintext

import (
	"fmt"
	"strings"
	"time"
)

// Count writes "1 node", "5 nodes", "2 launches". The noun is one whose plural ends so.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	for _, end := range []string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(noun, end) {
			return fmt.Sprintf("%d %ses", n, noun)
		}
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Span writes a duration to the second, as requests do: 1d12h, 8h, 1h30m, 45s, 0s.
func Span(d time.Duration) string {
	var b strings.Builder
	for _, u := range []struct {
		name  string
		value time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}} {
		if n := d / u.value; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			d -= n * u.value
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}

// Bytes writes a number of bytes: 512 B, 1 GiB, 1.5 TiB; a negative one as "-".
func Bytes(n int64) string {
	const unit = 1024
	switch {
	case n < 0:
		return "-"
	case n < unit:
		return fmt.Sprintf("%d B", n)
	}
	value, i := float64(n), -1
	for value >= unit && i < 5 {
		value /= unit
		i++
	}
	if value >= 99.95 || value == float64(int64(value)) {
		return fmt.Sprintf("%.0f %ciB", value, "KMGTPE"[i])
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[i])
}
