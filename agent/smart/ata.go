package smart

import (
	"errors"
	"fmt"
	"strings"

	"github.com/muster-hpc/muster/agent/facts"
)

// SMART of ATA: ACS-3 7.48, by way of ATA PASS-THROUGH (16) of SAT. The attributes are in no
// standard; their numbers and places are those of SFF-8035i and are the same everywhere,
// and these are the ones whose raw values makers agree on.
const (
	ataSize       = 512
	ataSMART      = 0xb0
	ataData       = 0xd0
	ataThresholds = 0xd1
	ataStatus     = 0xda
)

// attribute is one line of SMART's table.
type attribute struct {
	id      byte
	prefail bool // at its threshold the disk is about to fail; others are worn out
	value   byte
	limit   byte // 0: the disk has none
	raw     uint64
}

// counter is an attribute that counts errors.
type counter struct {
	id    byte
	what  string
	lost  bool
	bytes int // of the raw value; some makers keep something else in the others
}

func ataCounters() []counter {
	return []counter{
		{5, "reallocated sectors", false, 2},
		{187, "reported uncorrectable errors", true, 6},
		{197, "pending sectors", true, 6},
		{198, "uncorrectable sectors", true, 6},
		{199, "interface CRC errors", false, 6},
	}
}

// whole reports whether a sector of SMART is one: all its bytes are 0 together, and not
// each of them is.
func whole(b []byte) bool {
	var sum, any byte
	for _, x := range b {
		sum += x
		any |= x
	}
	return len(b) == ataSize && sum == 0 && any != 0
}

// parseATA reads SMART's data and its thresholds; what is not whole holds nothing.
func parseATA(data, limits []byte) []attribute {
	if !whole(data) {
		return nil
	}
	limit := map[byte]byte{}
	if whole(limits) {
		for i := range 30 {
			e := limits[2+12*i:]
			limit[e[0]] = e[1]
		}
	}
	var out []attribute
	for i := range 30 {
		e := data[2+12*i : 14+12*i]
		if e[0] == 0 {
			continue
		}
		out = append(out, attribute{id: e[0], prefail: e[1]&1 == 1, value: e[3], limit: limit[e[0]], raw: number(e[5:11])})
	}
	return out
}

// reached reports whether an attribute that foretells a failure is at its threshold.
// 0 and 255 are no values of attributes; a threshold of 254 or more is for tests.
func (a attribute) reached() bool {
	return a.prefail && a.limit > 0 && a.limit < 254 && a.value > 0 && a.value < 254 && a.value <= a.limit
}

// warmth reports whether an attribute is the temperature, which is of the room as much
// as of the disk.
func (a attribute) warmth() bool { return a.id == 190 || a.id == 194 }

func (a attribute) String() string {
	for _, c := range ataCounters() {
		if c.id == a.id {
			return fmt.Sprintf("%s (attribute %d) at %d, its threshold is %d", c.what, a.id, a.value, a.limit)
		}
	}
	return fmt.Sprintf("attribute %d at %d, its threshold is %d", a.id, a.value, a.limit)
}

// Verdicts of an ATA disk on itself.
type verdict int

const (
	silent verdict = iota // it does not say
	well
	failing
)

// judgeATA makes a health of what an ATA disk told. Where it has no verdict, its
// thresholds have.
func judgeATA(disk string, attributes []attribute, v verdict) Health {
	h := Health{Told: v != silent || len(attributes) > 0}
	warm := false
	var why []string
	for _, a := range attributes {
		for _, c := range ataCounters() {
			if c.id == a.id {
				h.Errors = append(h.Errors, facts.Errors{What: "disk " + disk + ", " + c.what, Count: a.raw & (1<<(8*c.bytes) - 1), Lost: c.lost})
			}
		}
		switch {
		case !a.reached():
		case a.warmth():
			warm = true
		default:
			why = append(why, a.String())
		}
	}
	switch {
	case v == well, v == failing && warm && len(why) == 0:
	case len(why) > 0:
		h.Failing = "it will fail soon: " + strings.Join(why, ", ")
	case v == failing:
		h.Failing = "it will fail soon: one of its thresholds is exceeded"
	}
	return h
}

// readATA asks a disk that speaks ATA.
func readATA(disk string, ask asker) (Health, error) {
	data, limits := make([]byte, ataSize), make([]byte, ataSize)
	if _, err := ask(ata(ataData, true), data); err != nil {
		return Health{}, err // it has no SMART, or has it switched off
	}
	if _, err := ask(ata(ataThresholds, true), limits); errors.Is(err, ErrSilent) {
		return Health{}, err
	} else if err != nil {
		clear(limits)
	}
	v := silent
	sense, err := ask(ata(ataStatus, false), nil)
	if errors.Is(err, ErrSilent) {
		return Health{}, err
	}
	if mid, high, ok := registers(sense); ok && mid == 0x4f && high == 0xc2 {
		v = well
	} else if ok && mid == 0xf4 && high == 0x2c {
		v = failing
	}
	return judgeATA(disk, parseATA(data, limits), v), nil
}

// ata is a command of SMART in one of SCSI: one that reads a sector, or one whose answer
// is in the registers.
func ata(feature byte, sector bool) []byte {
	c := make([]byte, 16)
	c[0], c[1], c[2] = 0x85, 3<<1, 0x20 // no data; registers into the sense data (CK_COND)
	if sector {
		c[1], c[2], c[6] = 4<<1, 0x0e, 1 // PIO in; as many blocks as the count says
	}
	c[4], c[8], c[10], c[12], c[14] = feature, 0, 0x4f, 0xc2, ataSMART
	if feature == ataThresholds {
		c[8] = 1
	}
	return c
}
