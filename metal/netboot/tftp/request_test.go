package tftp

import (
	"bytes"
	"strings"
	"testing"
)

func rrq(name string, options ...string) []byte {
	b := append([]byte{0, opRead}, name...)
	b = append(append(b, 0), "octet"...)
	b = append(b, 0)
	for _, o := range options {
		b = append(append(b, o...), 0)
	}
	return b
}

func TestRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   []byte
		want request
		err  string
	}{
		"plain":             {in: rrq("a.efi"), want: request{name: "a.efi"}},
		"slash":             {in: rrq("//a.efi"), want: request{name: "a.efi"}},
		"as Windows writes": {in: rrq(`\boot\a.efi`), want: request{name: "boot/a.efi"}},
		"all options":       {in: rrq("a", "BLKSIZE", "1468", "tsize", "0", "windowsize", "8", "timeout", "3"), want: request{"a", 1468, 8, 3, true}},
		"beyond its end":    {in: rrq("undionly.kpxe\xff", "blksize", "1456"), want: request{name: "undionly.kpxe", block: 1456}},
		"far beyond":        {in: rrq("undionly.kpxe\xff\xff\x00\x00", "tsize", "0"), want: request{name: "undionly.kpxe", size: true}},
		"in the middle":     {in: rrq("a\xffb"), want: request{name: "a\xffb"}},
		"bad values":        {in: rrq("a", "blksize", "7", "windowsize", "0", "timeout", "256", "blksize", "x"), want: request{name: "a"}},
		"unknown option":    {in: rrq("a", "multicast", "", "blksize", "512"), want: request{name: "a", block: 512}},
		"half an option":    {in: rrq("a", "blksize"), want: request{name: "a"}},
		"writing":           {in: append([]byte{0, 2}, rrq("a")[2:]...), err: "only reading"},
		"text":              {in: []byte("\x00\x01a\x00netascii\x00"), err: "octet"},
		"no name":           {in: rrq(""), err: "not a TFTP"},
		"nothing but ends":  {in: rrq("\xff\xff"), err: "not a TFTP"},
		"zeroes":            {in: rrq("a\x00\x00")[:5], err: "not a TFTP"},
		"cut off":           {in: []byte("\x00\x01a"), err: "not a TFTP"},
		"too long":          {in: rrq(strings.Repeat("a", 600)), err: "not a TFTP"},
	} {
		got, err := parseRequest(c.in)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(rrq("undionly.kpxe", "blksize", "1468", "windowsize", "16", "tsize", "0"))
	f.Add([]byte{0, 1, 0, 0, 0})
	f.Add(rrq("undionly.kpxe\xff\x00\x00", "tsize", "0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRequest(b)
		if err != nil {
			return
		}
		if r.name == "" && len(b) < 5 || strings.HasPrefix(r.name, "/") || strings.ContainsAny(r.name, "\\\x00") || strings.HasSuffix(r.name, "\xff") {
			t.Fatalf("name %q", r.name)
		}
		oack := r.appendOACK(nil, 1<<30)
		if len(oack) > maxRequest || !bytes.HasPrefix(oack, []byte{0, opOACK}) {
			t.Fatalf("%q", oack)
		}
	})
}
