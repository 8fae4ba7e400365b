package httpboot

import (
	"io"
	"net/netip"
	"os"
	"regexp"
	"strings"

	"github.com/muster-hpc/muster"
)

// Boot is what one machine is to load.
type Boot struct {
	// Number is the boot's random number. It is public.
	Number string
	// Kernel and Initramfs are files that are sent one after the other as if
	// they were one. Each begins at a multiple of four bytes, as the kernel wants
	// of archives.
	Kernel, Initramfs []string
	// Root is the image's root file system, for who wants it without encryption; "": it
	// is not here.
	Root string
	// Server is where the initramfs finds Muster: https://10.0.0.1:7700.
	Server string
	// CA is the SHA-256 of the authority's certificate, 64 hexadecimal digits.
	CA string
	// Args are further arguments of the kernel: console=ttyS0.
	Args []string
}

// Boots says which boot a number means, if the machine at that address may have it.
type Boots interface {
	Boot(number string, from netip.Addr) (Boot, bool)
}

// argument is what may stand in a kernel's command line. iPXE replaces ${...}, and
// takes words such as || and quotes for its own.
var argument = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.,:/=@%+\[\]-]*$`)

// Argument reports whether a text can be an argument of a kernel in a boot script: no blanks,
// quotes or signs that iPXE reads itself.
func Argument(text string) bool { return argument.MatchString(text) }

var (
	number      = regexp.MustCompile(`^[0-9a-z]{4,64}$`)
	fingerprint = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Script renders the iPXE script of a boot, whose files are under base: a URL that
// ends in "/". When a file cannot be loaded it asks for an address again, and so
// for what is to be booted by then: orders change while machines retry.
// EInvalid names everything that cannot stand in a script.
func Script(b Boot, base string) ([]byte, error) {
	var problems []muster.Problem
	say := func(field, hint, message string) {
		problems = append(problems, muster.Problem{Field: field, Message: message, Hint: hint})
	}
	if !number.MatchString(b.Number) {
		say("number", "use 4 to 64 small letters and digits", "not a boot's number")
	}
	if !fingerprint.MatchString(b.CA) {
		say("ca", "give 64 small hexadecimal digits", "not a SHA-256")
	}
	if !strings.HasPrefix(b.Server, "https://") || !argument.MatchString(b.Server) {
		say("server", "write https://address:port", "not the URL of a server")
	}
	if !strings.HasPrefix(base, "http") || !strings.HasSuffix(base, "/") || !argument.MatchString(base) {
		say("base", "write http://address:port/", "not a URL")
	}
	for _, a := range b.Args {
		if !argument.MatchString(a) {
			say("args", "leave out blanks, quotes and signs that iPXE reads itself", "cannot be an argument of a kernel here: "+a)
		}
	}
	if problems != nil {
		e := muster.Errorf(muster.EInvalid, "no script can be made for boot %q", b.Number).WithHint("change what is listed")
		return nil, e.Listing(problems)
	}
	at := base + "boot/" + b.Number + "/"
	args := append([]string{"initrd=initramfs", "muster.server=" + b.Server, "muster.ca=sha256:" + b.CA, "muster.boot=" + b.Number}, b.Args...)
	return []byte(`#!ipxe
# Boot ` + b.Number + ` of Muster.
imgfree
kernel ` + at + `kernel ` + strings.Join(args, " ") + ` || goto again
initrd --name initramfs ` + at + `initramfs || goto again
boot || goto again
:again
echo Boot ` + b.Number + ` failed, asking again in 5 seconds
sleep 5
dhcp || reboot
isset ${filename} || exit 1
chain --replace ${filename} || reboot
`), nil
}

// part is one of the files that are sent one after the other.
type part struct {
	file io.ReadSeeker // *os.File, or zeros
	at   int64         // where it begins in the whole
	size int64
}

// content is several files as one.
type content struct {
	parts []part
	size  int64
	files []*os.File
}

func (c *content) close() {
	for _, f := range c.files {
		f.Close()
	}
}

// compose opens files as one, each at a multiple of four bytes.
func compose(paths []string) (*content, error) {
	c := &content{}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			c.close()
			return nil, err
		}
		c.files = append(c.files, f)
		st, err := f.Stat()
		if err == nil && !st.Mode().IsRegular() {
			err = os.ErrInvalid
		}
		if err != nil {
			c.close()
			return nil, err
		}
		if pad := (4 - c.size%4) % 4; pad > 0 {
			c.add(strings.NewReader("\x00\x00\x00"[:pad]), pad)
		}
		c.add(f, st.Size())
	}
	return c, nil
}

func (c *content) add(r io.ReadSeeker, size int64) {
	c.parts = append(c.parts, part{r, c.size, size})
	c.size += size
}
