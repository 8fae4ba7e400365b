package qemu

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// Each prompt of the firmware is answered once, also one that comes in pieces; a console
// that says nothing of the kind is left alone.
func TestBannersArePassed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said []string
		keys int
	}{
		"both":    {[]string{"SeaBIOS\r\n", "Press Ctrl-B to configure iPXE (PCI 00:02.0)...", "   \r\niPXE\r\n", "Press Ctrl-B for the iPXE command line...", "\r\nnet0"}, 2},
		"pieces":  {[]string{"Pre", "ss Ctrl", "-B for the", " iPXE command line..."}, 1},
		"nothing": {[]string{"login: Press any key\r\n", "Ctrl-B"}, 0},
		"booted":  {[]string{"http://10.77.0.1/boot/x/initramfs... ok\r\n", "Press Ctrl-B"}, 0},
	} {
		ours, theirs := net.Pipe()
		keys := make(chan []byte)
		go func() {
			b, _ := io.ReadAll(theirs)
			keys <- b
		}()
		passed := make(chan struct{})
		go func() { passBanners(ours); ours.Close(); close(passed) }()
		for _, text := range append(c.said, "kernel... ok\r\nhttp://10.77.0.1/boot/x/initramfs") {
			if _, err := theirs.Write([]byte(text)); err != nil {
				break // it has heard enough
			}
		}
		<-passed
		if got := <-keys; len(got) != c.keys || len(bytes.Trim(got, " ")) > 0 {
			t.Errorf("%s: %q was pressed", name, got)
		}
	}
}
