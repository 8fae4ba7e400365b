package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/muster-hpc/muster"
)

// Limits of the messages of a boot.
const (
	MaxBootCheckIn = 512 << 10 // bytes: facts of a large machine
	MaxBootReply   = 4 << 20   // bytes: an image of 64 GiB has 16384 pieces of 4 MiB

	MinBootPiece  = 64 << 10 // bytes
	MaxBootPiece  = 64 << 20
	maxBootPieces = 1 << 15
	maxBootText   = 1024
	maxBootMACs   = 256
	maxBootFiles  = 1024
	maxBootDisks  = 512
	maxBootSteps  = 1024 // one for each disk of a task, and for each that is not in it
	maxBootBlob   = 4096 // of a TPM
)

// DecodeBootCheckIn reads a check-in and checks every field of it. The error is
// EInvalid and names all problems; it repeats nothing of a key.
func DecodeBootCheckIn(b []byte) (*BootCheckIn, error) {
	h := new(BootCheckIn)
	if err := decodeBoot(b, MaxBootCheckIn, h, "hello"); err != nil {
		return nil, err
	}
	p := problems{}
	p.want(h.Protocol == BootProtocol, "protocol", "is %d, not %d", h.Protocol, BootProtocol)
	p.want(ValidBoot(h.Boot), "boot", "is not a boot number")
	p.want(len(h.Key) == 32, "key", "has %d bytes, not 32", len(h.Key))
	p.want(ValidMAC(h.MAC), "mac", "is not a MAC address in lower case with colons")
	p.want(len(h.MACs) <= maxBootMACs, "macs", "are more than %d", maxBootMACs)
	for i, m := range h.MACs {
		p.want(i > maxBootMACs || ValidInterface(m), fmt.Sprintf("macs[%d]", i), "is not a MAC address or a GUID in lower case with colons")
	}
	p.want(h.Address.IsValid() && !h.Address.IsUnspecified() && h.Address.Zone() == "", "address", "is none")
	for name, s := range map[string]string{"version": h.Version, "serial": h.Serial, "uuid": h.UUID, "state": h.State} {
		p.text(name, s, 256)
	}
	p.text("progress", h.Progress, maxBootText)
	if t := h.TPM; t != nil {
		p.want(len(t.Endorsement) > 0 && len(t.Endorsement) <= maxBootBlob, "tpm.endorsement", "has %d bytes", len(t.Endorsement))
		p.want(len(t.Attestation) > 0 && len(t.Attestation) <= maxBootBlob, "tpm.attestation", "has %d bytes", len(t.Attestation))
		p.want(len(t.Answer) <= 256, "tpm.answer", "has %d bytes", len(t.Answer))
	}
	p.want(len(h.Stages) <= 64, "stages", "are more than 64")
	for i, s := range h.Stages {
		p.want(s.Name != "" && len(s.Name) <= 64 && s.After >= 0, fmt.Sprintf("stages[%d]", i), "has no name or no time")
	}
	p.want(h.Attempt >= 0, "attempt", "is less than 0")
	if f := h.Failure; f != nil {
		p.want(f.Stage != "" && f.Code != "" && f.Text != "", "failure", "lacks its stage, its code or its text")
		for name, s := range map[string]string{"failure.stage": f.Stage, "failure.code": f.Code, "failure.text": f.Text, "failure.hint": f.Hint} {
			p.text(name, s, maxBootText)
		}
	}
	if d := h.Done; d != nil {
		p.want(d.Kind == BootDiscover || d.Kind == BootTest || d.Kind == BootClean, "done.kind", "is %q", cut(string(d.Kind)))
		p.want(d.Took >= 0, "done.took_seconds", "is less than 0")
		p.want(len(d.Steps) <= maxBootSteps, "done.steps", "are more than %d", maxBootSteps)
		for i, s := range d.Steps {
			p.text(fmt.Sprintf("done.steps[%d]", i), s.What+s.Check, 4*maxBootText)
		}
	}
	return h, p.err("the check-in makes no sense")
}

// DecodeBootReply reads an answer and checks what a machine is about to do. The
// error is EInvalid; it repeats no secret.
func DecodeBootReply(b []byte) (*BootReply, error) {
	r := new(BootReply)
	if err := decodeBoot(b, MaxBootReply, r, "answer"); err != nil {
		return nil, err
	}
	p := problems{}
	p.want(r.Protocol == BootProtocol, "protocol", "is %d, not %d", r.Protocol, BootProtocol)
	n := 0
	for _, is := range []bool{r.Wait != nil, r.Challenge != nil, r.Task != nil} {
		if is {
			n++
		}
	}
	p.want(n <= 1, "", "says %d things at once", n)
	if w := r.Wait; w != nil {
		p.want(w.Place >= 0 && w.ETA >= 0 && w.Next >= 0 && time.Duration(w.Next) <= time.Hour, "wait", "names a place or time that cannot be")
		p.text("wait.reason", w.Reason, maxBootText)
	}
	if c := r.Challenge; c != nil {
		p.want(len(c.Credential) > 0 && len(c.Credential) <= maxBootBlob && len(c.Secret) > 0 && len(c.Secret) <= maxBootBlob, "challenge", "is empty or too long")
	}
	if r.Task != nil {
		r.Task.check(&p)
	}
	return r, p.err("the server's answer makes no sense")
}

// Check reports whether a task can be carried out; EInvalid names all problems.
func (o *BootTask) Check() error {
	p := problems{}
	o.check(&p)
	return p.err("the task makes no sense")
}

func (o *BootTask) check(p *problems) {
	p.want(o.GiveUp >= 0 && time.Duration(o.GiveUp) <= 24*time.Hour, "task.give_up_seconds", "is %v: 0 to a day", o.GiveUp)
	p.want(o.Stay >= 0 && time.Duration(o.Stay) <= 10*time.Minute, "task.stay_seconds", "is %v: 0 to ten minutes", o.Stay)
	p.want(o.Effort >= 0 && o.Effort <= 64, "task.effort", "is %d: 0 to 64", o.Effort)
	p.want(o.Attempt >= 0, "task.attempt", "is less than 0")
	checkDisks("task.scratch", o.Scratch, p)
	switch o.Kind {
	case BootDiscover, BootOff:
	case BootTest:
		checkTested(o.Links, p)
	case BootClean:
		p.want(o.Clean != nil, "task.clean", "is missing")
		if o.Clean != nil {
			checkDisks("task.clean.disks", o.Clean.Disks, p)
		}
	case BootImage:
		o.checkImage(p)
	default:
		p.want(false, "task.kind", "is %q, which this program does not know", cut(string(o.Kind)))
	}
}

func (o *BootTask) checkImage(p *problems) {
	p.want(o.Attempt > 0, "task.attempt", "is missing")
	p.want(validHostname(o.Hostname), "task.hostname", "is %q, which is not a host name", cut(o.Hostname))
	p.want(o.Bootstrap != nil, "task.seed", "is missing")
	checkLinks(o.Links, p)
	switch {
	case o.Memory != nil:
		o.Memory.check("task.memory", p)
		p.want(o.Image == nil, "task.image", "is not read by a machine that goes on from its memory")
	case o.Image == nil:
		p.want(false, "task.image", "is missing")
	default:
		o.Image.check(p)
	}
	p.want(len(o.Files) <= maxBootFiles, "task.files", "are more than %d", maxBootFiles)
	for i, f := range o.Files {
		ok := strings.HasPrefix(f.Path, "/") && path.Clean(f.Path) == f.Path && f.Path != "/" && !strings.ContainsRune(f.Path, 0) && f.Mode <= 0o7777
		p.want(ok, fmt.Sprintf("task.files[%d]", i), "has no clean absolute path, or a mode that is none")
	}
	for i, m := range o.Masks {
		p.want(m != "" && len(m) <= 255 && path.Base(m) == m && m != "." && m != "..", fmt.Sprintf("task.masks[%d]", i), "is not a unit name")
	}
	p.want(len(o.Init) == 0 || strings.HasPrefix(o.Init[0], "/"), "task.init", "is not an absolute path")
	for i, a := range o.Init {
		p.want(!strings.ContainsRune(a, 0) && len(a) < 4096, fmt.Sprintf("task.init[%d]", i), "is not an argument")
	}
}

func (a *MemoryArea) check(field string, p *problems) {
	checkDisks(field+".disk", []CleanDisk{a.Disk}, p)
	p.want(a.Disk.Keep > 0, field+".disk.keep_bytes", "is %d", a.Disk.Keep)
	p.want(len(a.Key) == MemoryKeySize, field+".key", "has %d bytes, not %d", len(a.Key), MemoryKeySize)
}

// Check reports what is wrong with an order to hibernate.
func (o *HibernateOrder) Check() error {
	p := problems{}
	p.want(o.ID != "" && len(o.ID) <= 64, "id", "is missing or too long")
	o.Memory.check("memory", &p)
	return p.err("the order to hibernate makes no sense")
}

func checkLinks(links []BootLink, p *problems) {
	p.want(len(links) <= 64, "task.links", "are more than 64")
	seen := map[string]bool{}
	for i, l := range links {
		at := fmt.Sprintf("task.links[%d]", i)
		p.want(ValidInterface(l.MAC), at+".mac", "is not a MAC address or a GUID in lower case with colons")
		p.want(validLink(l.Name), at+".name", "is %q, which is not an interface name", cut(l.Name))
		p.want(!seen[l.Name] && !seen[l.MAC], at, "is named twice")
		seen[l.Name], seen[l.MAC] = true, true
		p.want(l.Speed >= 0, at+".speed_bps", "is less than 0")
		p.want(l.MTU == 0 || l.MTU >= 576 && l.MTU <= 65535, at+".mtu", "is %d", l.MTU)
		p.want(!l.Gateway.IsValid() || l.Address.IsValid() && l.Gateway.Is4() == l.Address.Addr().Is4(), at+".gateway", "does not go with the address")
		p.want(!l.Default || l.Gateway.IsValid(), at+".default", "needs a gateway")
	}
}

// checkTested checks links that are looked at only: nothing is named or set.
func checkTested(links []BootLink, p *problems) {
	p.want(len(links) <= maxBootMACs, "task.links", "are more than %d", maxBootMACs)
	for i, l := range links {
		at := fmt.Sprintf("task.links[%d]", i)
		p.want(ValidInterface(l.MAC), at+".mac", "is not a MAC address or a GUID in lower case with colons")
		p.want(l.Speed >= 0, at+".speed_bps", "is less than 0")
		p.text(at+".name", l.Name, 64)
	}
}

func checkDisks(field string, disks []CleanDisk, p *problems) {
	p.want(len(disks) <= maxBootDisks, field, "are more than %d", maxBootDisks)
	for i, d := range disks {
		p.want(d.Size > 0 && (d.Serial != "" || d.Model != ""), fmt.Sprintf("%s[%d]", field, i), "is not told apart from others")
		p.want(d.Keep >= 0 && d.Keep <= d.Size/2, fmt.Sprintf("%s[%d].keep_bytes", field, i), "is %d of %d: at most half", d.Keep, d.Size)
	}
}

func (f *BootFiles) check(p *problems) {
	r := f.Root
	p.want(f.Memory >= 0 && f.Memory < 1<<50, "task.image.memory_bytes", "is %d", f.Memory)
	if f.Disk != "" {
		p.want(len(f.Disk) <= 64 && !strings.ContainsFunc(f.Disk, func(r rune) bool { return r <= ' ' || r > '~' }), "task.image.disk", "is not a serial number")
		p.want(r.Size > 0, "task.image.root", "has no size")
		p.want(r.Path == "" && len(r.Pieces) == 0 && f.Key == "" && f.Plain == "" && len(f.Servers) == 0, "task.image", "is on a disk, and cannot be fetched as well")
		return
	}
	p.want(validFilePath(r.Path), "task.image.root.path", "is none")
	p.want(r.Size > 0 && r.Piece >= MinBootPiece && r.Piece <= MaxBootPiece, "task.image.root", "has no size, or pieces of no size that can be")
	if r.Size > 0 && r.Piece > 0 {
		n := (r.Size-1)/r.Piece + 1
		p.want(n <= maxBootPieces && int64(len(r.Pieces)) == n, "task.image.root.pieces", "are %d, not %d", len(r.Pieces), n)
	}
	for i, d := range r.Pieces {
		if len(d) != sha256.Size {
			p.want(false, fmt.Sprintf("task.image.root.pieces[%d]", i), "is not a SHA-256 digest")
			break
		}
	}
	p.want(f.Key != "" && len(f.Key) <= 1024 && !strings.ContainsAny(f.Key, " \r\n\x00"), "task.image.key", "is missing, or none")
	if f.Plain != "" {
		u, err := url.Parse(f.Plain)
		p.want(err == nil && u.Scheme == "http" && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" && len(f.Plain) < 1024,
			"task.image.plain", "is not of the form http://ADDRESS:PORT/PATH")
	}
	p.want(len(f.Servers) <= 64, "task.image.servers", "are more than 64")
	for i, s := range f.Servers {
		u, err := url.Parse(s)
		p.want(err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == "",
			fmt.Sprintf("task.image.servers[%d]", i), "is not of the form https://ADDRESS:PORT")
	}
}

func validFilePath(s string) bool {
	return s != "" && len(s) <= 512 && path.Clean("/"+s) == "/"+s && !strings.ContainsAny(s, "?#%\\\x00 ")
}

// ValidBoot reports whether s can be the number of a boot: 8 to 64 letters, digits
// and dashes.
func ValidBoot(s string) bool {
	return len(s) >= 8 && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

// ValidMAC reports whether s is an Ethernet address as the kernel writes it.
func ValidMAC(s string) bool {
	return len(s) == len("52:54:00:12:34:56") && hexBytes(s) && s != "00:00:00:00:00:00" && s != "ff:ff:ff:ff:ff:ff"
}

// ValidInterface reports whether s is an Ethernet address, or the GUID of an InfiniBand
// port, as muster.ParseMAC writes them.
func ValidInterface(s string) bool {
	return ValidMAC(s) || muster.IsGUID(s) && hexBytes(s) && s != "00:00:00:00:00:00:00:00"
}

// hexBytes reports whether s is bytes in hexadecimal, in lower case with colons.
func hexBytes(s string) bool {
	for i := range len(s) {
		c := s[i]
		if i%3 == 2 {
			if c != ':' {
				return false
			}
		} else if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func validLink(s string) bool {
	return s != "" && len(s) <= 15 && s != "." && s != ".." && s != "lo" &&
		strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' || r == ':' }) < 0
}

func validHostname(s string) bool {
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0 && s[0] != '-' && s[0] != '.'
}

// decodeBoot reads one JSON value and nothing after it. What JSON stumbled over
// may be a secret: it is not repeated.
func decodeBoot(b []byte, limit int, into any, what string) error {
	if len(b) > limit {
		return muster.Errorf(muster.EInvalid, "the %s is longer than %d bytes", what, limit)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(into); err != nil {
		return muster.Errorf(muster.EInvalid, "the %s is not the JSON it should be", what)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return muster.Errorf(muster.EInvalid, "the %s has something after its end", what)
	}
	return nil
}

// problems gathers what is wrong, so that all of it is told at once.
type problems []muster.Problem

const maxProblems = 32

func (p *problems) want(ok bool, field, format string, args ...any) {
	if !ok && len(*p) < maxProblems {
		*p = append(*p, muster.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
}

// text wants at most n bytes that can be shown on a console.
func (p *problems) text(field, s string, n int) {
	p.want(len(s) <= n && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0, field, "is too long or not printable")
}

func (p *problems) err(what string) error {
	if len(*p) == 0 {
		return nil
	}
	e := muster.Errorf(muster.EInvalid, "%s", what).WithHint("server and first program are perhaps of different versions")
	e.Problems = *p
	return e
}

// cut makes a short text of what came from outside.
func cut(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > 40 {
		s = strings.ToValidUTF8(s[:40], "") + "..."
	}
	return s
}
