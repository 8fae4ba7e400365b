package qemu

import (
	"bytes"
	"context"
	"net"
	"time"
)

// The prompts of iPXE, as Debian makes it: each is shown for some seconds, so that somebody
// can press Ctrl-B, and goes away at once when another key is pressed.
const (
	banner     = "Press Ctrl-B"
	bannerKey  = ' '
	bannerEnds = 20 * time.Second // it has long begun to boot
)

// PassBanners presses a key at each prompt of the firmware of a machine that has just been
// switched on, whose console is at a socket: a boot is 2 to 4 seconds shorter. It returns
// when the firmware is done, the machine is off, or ctx is done.
func PassBanners(ctx context.Context, socket string) {
	ctx, cancel := context.WithTimeout(ctx, bannerEnds)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	passBanners(conn)
}

// passBanners answers prompts until the kernel's file has been fetched, or the end.
func passBanners(conn net.Conn) {
	var seen []byte
	buf := make([]byte, 512)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		seen = append(seen, buf[:n]...)
		if bytes.Contains(seen, []byte("/initramfs")) {
			return
		}
		if i := bytes.LastIndex(seen, []byte(banner)); i >= 0 {
			if _, err := conn.Write([]byte{bannerKey}); err != nil {
				return
			}
			seen = seen[i+len(banner):]
		}
		if over := len(seen) - 64; over > 0 { // a prompt may come in two pieces
			seen = seen[over:]
		}
	}
}
