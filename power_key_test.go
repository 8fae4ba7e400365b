package muster

import (
	"bytes"
	"strings"
	"testing"
)

func TestParsePowerKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "key of the rack": "key of the rack", "0x6b6579": "key", "0X6B65790000": "key", "0x00": "", "0x": "",
		strings.Repeat("k", 20): strings.Repeat("k", 20), "0x" + strings.Repeat("6b", 20): strings.Repeat("k", 20), "0x6b0079": "k\x00y",
	} {
		if got, err := ParsePowerKey(text); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for text, why := range map[string]Reason{
		strings.Repeat("k", 21): ReasonTooLarge, "0x" + strings.Repeat("6b", 21): ReasonTooLarge, "0x6b6": ReasonBadValue, "0xkey": ReasonBadValue,
	} {
		_, err := ParsePowerKey(text)
		if ReasonOf(err) != why || strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCheckPowerKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind PowerKind
		key  string
		want Reason
	}{
		{PowerIPMI, "", ""}, {PowerIPMI, "key", ""}, {PowerRedfish, "", ""}, {PowerRedfish, "key", ReasonContradiction}, {PowerIPMI, "0xg0", ReasonBadValue},
	} {
		list := PowerAddress{Kind: c.kind}.CheckPowerKey(c.key)
		if c.want == "" && len(list) > 0 || c.want != "" && (len(list) != 1 || list[0].Reason != c.want || list[0].Field != "power_key") {
			t.Errorf("%s %q: %+v", c.kind, c.key, list)
		}
	}
}

func FuzzParsePowerKey(f *testing.F) {
	f.Add("0x6b6579")
	f.Add("text")
	f.Fuzz(func(t *testing.T, s string) {
		if key, err := ParsePowerKey(s); err == nil && (len(key) > 20 || bytes.HasSuffix(key, []byte{0})) {
			t.Errorf("%q: %q", s, key)
		}
	})
}
