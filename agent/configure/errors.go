package configure

import (
	"errors"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// failed makes any error one for people.
func failed(doing string, err error) error {
	var e *muster.Error
	if errors.As(err, &e) {
		return err
	}
	return muster.Errorf(muster.EInternal, "cannot %s: %v", doing, err).
		WithHint("look at the node's journal for what came before").Wrap(err)
}

// These bound what goes into files whose form a stray character would break.
var (
	hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	outside  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	domain   = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,120}[a-z0-9])?$`)
	ifName   = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,14}$`)
)

// firstUID is the smallest number of a person: below are the image's own.
const firstUID = muster.FirstUID

// valid refuses a configuration that would break a file. The server makes
// none; this is the last wall before text goes into passwd and hosts.
func valid(cfg *wire.NodeConfig) error {
	bad := func(format string, args ...any) error {
		return muster.Errorf(muster.EInvalid, "configuration of this node: "+format, args...)
	}
	if cfg == nil || !hostName.MatchString(cfg.Node) {
		return bad("bad node name")
	}
	if cfg.Domain != "" && !domain.MatchString(cfg.Domain) {
		return bad("bad domain")
	}
	for _, i := range []string{cfg.Interface, cfg.Management} {
		if i != "" && !ifName.MatchString(i) {
			return bad("bad interface name")
		}
	}
	for _, h := range cfg.Hosts {
		if _, err := netip.ParseAddr(h.Address); err != nil || !hostName.MatchString(h.Name) {
			return bad("bad host %q", h.Name)
		}
	}
	for _, h := range cfg.Outside {
		if _, err := netip.ParseAddr(h.Address); err != nil || !outside.MatchString(h.Name) {
			return bad("bad host %q outside", h.Name)
		}
	}
	for _, m := range cfg.Mounts {
		if !filepath.IsAbs(m.Target) || filepath.Clean(m.Target) != m.Target || m.Target == "/" {
			return bad("bad place %q to mount something", m.Target)
		}
	}
	for _, text := range []string{cfg.SSH.HostCA, cfg.SSH.UserCA, cfg.SSH.HostCertificate, cfg.SSH.RootPublicKey, cfg.SSH.PrincipalSuffix, cfg.ProxyURL} {
		if strings.ContainsAny(strings.TrimSpace(text), "\n\r") {
			return bad("a key or address of more than one line")
		}
	}
	return nil
}

func validUser(u wire.Account) error {
	if !muster.IsUserName(strings.TrimPrefix(u.Name, "_")) {
		return muster.Errorf(muster.EInvalid, "bad user name %q", u.Name).
			WithHint("use lower-case letters, digits, - _ and ., at most %d", muster.LongestUserName)
	}
	if min(u.UID, u.GID) < firstUID || max(u.UID, u.GID) > muster.LastUID {
		return muster.Errorf(muster.EInvalid, "user %s: number %d is not one for people", u.Name, u.UID).
			WithHint("give users numbers from %d to %d", firstUID, muster.LastUID)
	}
	for _, k := range u.Keys {
		if strings.ContainsAny(strings.TrimSpace(k), "\n\r") {
			return muster.Errorf(muster.EInvalid, "user %s: a key of more than one line", u.Name)
		}
	}
	return nil
}
