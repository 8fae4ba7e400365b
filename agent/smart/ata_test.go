package smart

import (
	"errors"
	"reflect"
	"regexp"
	"testing"

	"github.com/muster-hpc/muster/agent/facts"
)

// line is an attribute as a disk has it.
type line struct {
	id, flags, value, limit byte
	raw                     uint64
}

// sectors are SMART's data and thresholds.
func sectors(lines ...line) (data, limits []byte) {
	data, limits = make([]byte, ataSize), make([]byte, ataSize)
	data[0], limits[0] = 1, 1
	for i, l := range lines {
		d := data[2+12*i:]
		d[0], d[1], d[3], d[4] = l.id, l.flags, l.value, l.value
		for k := range 6 {
			d[5+k] = byte(l.raw >> (8 * k))
		}
		limits[2+12*i], limits[3+12*i] = l.id, l.limit
	}
	for _, b := range [][]byte{data, limits} {
		var sum byte
		for _, x := range b {
			sum += x
		}
		b[511] = -sum
	}
	return data, limits
}

// used is a disk of some years: nothing is at its threshold.
func used(more ...line) []line {
	return append([]line{
		{1, 0x0f, 83, 44, 0x0c0ffee}, {5, 0x33, 100, 10, 0x0009_0000_0003}, {9, 0x32, 61, 0, 34567}, {187, 0x32, 98, 0, 2},
		{197, 0x12, 100, 0, 8}, {198, 0x10, 100, 0, 1}, {199, 0x3e, 200, 0, 1 << 40},
	}, more...)
}

func TestATA(t *testing.T) {
	t.Parallel()
	counts := []facts.Errors{
		{What: "disk sda, reallocated sectors", Count: 3}, // what else is in its raw value is the maker's
		{What: "disk sda, reported uncorrectable errors", Count: 2, Lost: true},
		{What: "disk sda, pending sectors", Count: 8, Lost: true},
		{What: "disk sda, uncorrectable sectors", Count: 1, Lost: true},
		{What: "disk sda, interface CRC errors", Count: 1 << 40},
	}
	for name, c := range map[string]struct {
		more    []line
		verdict verdict
		says    string
	}{
		"well":                          {nil, well, ""},
		"no verdict":                    {nil, silent, ""},
		"its verdict":                   {nil, failing, " "},
		"at a threshold":                {[]line{{3, 0x03, 20, 21, 0}}, silent, "attribute 3 at 20.* 21"},
		"its verdict, and why":          {[]line{{10, 0x13, 97, 97, 0}}, failing, "attribute 10 at 97.* 97"},
		"its verdict counts":            {[]line{{3, 0x03, 20, 21, 0}}, well, ""},
		"worn out":                      {[]line{{4, 0x32, 20, 21, 0}}, silent, ""},
		"no value":                      {[]line{{3, 0x03, 0, 21, 0}, {7, 0x03, 255, 21, 0}}, silent, ""},
		"a threshold that always fails": {[]line{{3, 0x03, 20, 255, 0}}, silent, ""},
		"warm":                          {[]line{{190, 0x23, 40, 45, 60}}, failing, ""},
		"warm and failing":              {[]line{{190, 0x23, 40, 45, 60}, {3, 0x03, 20, 21, 0}}, failing, "attribute 3 at 20.* 21"},
	} {
		data, limits := sectors(used(c.more...)...)
		h := judgeATA("sda", parseATA(data, limits), c.verdict)
		if !h.Told || (h.Failing == "") != (c.says == "") || !regexp.MustCompile(c.says).MatchString(h.Failing) || !reflect.DeepEqual(h.Errors, counts) {
			t.Errorf("%s: %+v", name, h)
		}
	}
	data, limits := sectors(line{5, 0x33, 9, 10, 3})
	if h := judgeATA("sda", parseATA(data, limits), silent); !regexp.MustCompile(`attribute 5\b.* 9.* 10`).MatchString(h.Failing) {
		t.Errorf("%+v", h)
	}
	limits[7]++
	if h := judgeATA("sda", parseATA(data, limits), silent); !h.Told || h.Failing != "" || len(h.Errors) != 1 {
		t.Errorf("thresholds that are not whole judge: %+v", h)
	}
	data[7]++
	if h := judgeATA("sda", parseATA(data, limits), silent); !reflect.DeepEqual(h, Health{}) {
		t.Errorf("data that are not whole count: %+v", h)
	}
}

// registersIn are the sense data in which a disk left mid and high.
func registersIn(mid, high byte) (descriptors, fixed []byte) {
	descriptors = []byte{0x72, 1, 0x00, 0x1d, 0, 0, 0, 14, 0x09, 12, 0, 0, 0, 0, 0, 0, 0, mid, 0, high, 0xa0, 0x50}
	fixed = []byte{0x70, 0, 1, 0, 0x50, 0xa0, 0, 10, 0, 0, mid, high, 0x00, 0x1d, 0, 0, 0, 0}
	return descriptors, fixed
}

// satDisk answers as a SATA disk behind the kernel does.
func satDisk(lines []line, sense []byte, fault func(feature byte) error) asker {
	data, limits := sectors(lines...)
	return func(cdb, in []byte) ([]byte, error) {
		if cdb[0] == 0x12 {
			copy(in[8:], "ATA     SOME DISK")
			return nil, nil
		}
		if cdb[0] != 0x85 || cdb[14] != ataSMART || cdb[10] != 0x4f || cdb[12] != 0xc2 {
			return nil, errRefused
		}
		if err := fault(cdb[4]); err != nil {
			return nil, err
		}
		switch cdb[4] {
		case ataData:
			copy(in, data)
		case ataThresholds:
			copy(in, limits)
		case ataStatus:
			return sense, nil
		}
		return nil, nil
	}
}

func TestAskATA(t *testing.T) {
	t.Parallel()
	none := func(byte) error { return nil }
	at := func(f byte, err error) func(byte) error {
		return func(g byte) error {
			if f == g {
				return err
			}
			return nil
		}
	}
	badly, badlyFixed := registersIn(0xf4, 0x2c)
	good, goodFixed := registersIn(0x4f, 0xc2)
	other, _ := registersIn(0, 0)
	weak := line{3, 0x03, 20, 21, 0}
	for name, c := range map[string]struct {
		sense   []byte
		fault   func(byte) error
		failing bool
		told    bool
		err     error
	}{
		"well":                  {good, none, false, true, nil},
		"well, fixed":           {goodFixed, none, false, true, nil},
		"failing":               {badly, none, true, true, nil},
		"failing, fixed":        {badlyFixed, none, true, true, nil},
		"no registers":          {nil, none, true, true, nil}, // its thresholds judge
		"other registers":       {other, none, true, true, nil},
		"no verdict":            {nil, at(ataStatus, errRefused), true, true, nil},
		"no thresholds":         {nil, at(ataThresholds, errRefused), false, true, nil},
		"no SMART":              {nil, at(ataData, errRefused), false, false, errRefused},
		"silent":                {nil, at(ataData, ErrSilent), false, false, ErrSilent},
		"silent for thresholds": {nil, at(ataThresholds, ErrSilent), false, false, ErrSilent},
		"silent for verdict":    {nil, at(ataStatus, ErrSilent), false, false, ErrSilent},
	} {
		h, err := askSCSI("sda", satDisk(used(weak), c.sense, c.fault))
		if !errors.Is(err, c.err) || h.Told != c.told || (h.Failing != "") != c.failing || c.told && len(h.Errors) != 5 {
			t.Errorf("%s: %+v %v", name, h, err)
		}
	}
}

func TestHarmless(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sense []byte
		want  bool
	}{
		{[]byte{0x72, 1, 0, 0x1d}, true}, {[]byte{0x70, 0, 1}, true}, {[]byte{0xf0, 0, 0}, true},
		{[]byte{0x70, 0, 5}, false}, {[]byte{0x72, 0xb, 0}, false}, {[]byte{0x70, 0}, false}, {nil, false}, {[]byte{0x12, 0, 0, 0}, false},
	} {
		if got := harmless(c.sense); got != c.want {
			t.Errorf("%x: %v", c.sense, got)
		}
	}
}
