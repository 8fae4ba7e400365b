package muster_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// On the way from an error to a text nothing of it is lost: problems, causes, and what to do.
func TestExplain(t *testing.T) {
	t.Parallel()
	disk := &fs.PathError{Op: "mkdir", Path: "/v", Err: errors.New("no space left on device")}
	volume := muster.Errorf(muster.EUnavailable, "volume home cannot be made").WithHint("is the disk full?").Wrap(fmt.Errorf("make it: %w", disk))
	address := muster.Errorf(muster.EInvalid, "the address is wrong").Listing([]muster.Problem{{Field: "power.user", Message: "too long", Hint: "shorten it"}, {Field: "power.quirk", Message: "unknown"}})
	for name, c := range map[string]struct {
		err        error
		text, hint string
	}{
		"nothing":    {nil, "", ""},
		"plain":      {disk, "mkdir /v: no space left on device", ""},
		"a cause":    {volume, "volume home cannot be made (make it: mkdir /v: no space left on device)", "is the disk full?"},
		"wrapped":    {fmt.Errorf("prepare: %w", volume), "prepare: volume home cannot be made (make it: mkdir /v: no space left on device)", "is the disk full?"},
		"problems":   {address, "the address is wrong: power.user: too long (shorten it); power.quirk: unknown", ""},
		"said twice": {muster.Errorf(muster.EInternal, "it failed: %v", disk).Wrap(disk), "it failed: mkdir /v: no space left on device", ""},
		"a cause of a cause": {muster.Errorf(muster.EInternal, "no boot").Wrap(volume),
			"no boot (volume home cannot be made) (make it: mkdir /v: no space left on device)", ""},
		"a port of each try": {
			muster.Errorf(muster.EUnavailable, "no answer").Wrap(fmt.Errorf("ask: %w", &net.OpError{Op: "read", Net: "udp", Source: &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 48123}, Addr: &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 623}, Err: errors.New("i/o timeout")})),
			"no answer (ask: read udp 10.0.0.2:623: i/o timeout)", "",
		},
		"several": {errors.Join(errors.New("one"), volume), "one; volume home cannot be made (make it: mkdir /v: no space left on device)", "is the disk full?"},
	} {
		if text, hint := muster.Explain(c.err); text != c.text || hint != c.hint {
			t.Errorf("%s: %q, %q", name, text, hint)
		}
	}
	if text, _ := muster.Explain(muster.Errorf(muster.EInternal, "x").Wrap(errors.New(strings.Repeat("ä", 9999)))); len(text) > 500 {
		t.Errorf("%d bytes", len(text))
	}
	if e := volume.Explained(); e.Err != nil || !strings.Contains(e.Message, "no space left") || e.Hint != volume.Hint {
		t.Errorf("%+v", e)
	}
	if e := address.Explained(); e.Message != address.Message || len(e.Problems) != 2 {
		t.Errorf("%+v", e)
	}
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Warn("cluster preparation failed", "error", volume)
	for _, part := range []string{"cannot be made", "no space left on device", "is the disk full?"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the log has no %q: %s", part, out.String())
		}
	}
}
