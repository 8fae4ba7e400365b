package agent

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/wire"
)

// maxBootstrap is more than any seed: a few lines and one certificate.
const maxBootstrap = 64 << 10

const bootstrapHint = "the provider writes it when it starts the machine: boot the node again"

// ParseBootstrap decodes and checks a seed. Fields that a newer provider added are
// ignored; everything else must be there and make sense. The error is EInvalid
// and never holds the token.
func ParseBootstrap(b []byte) (wire.Bootstrap, error) {
	var s wire.Bootstrap
	bad := func(format string, args ...any) (wire.Bootstrap, error) {
		return wire.Bootstrap{}, muster.Errorf(muster.EInvalid, "the seed "+format, args...).WithHint(bootstrapHint)
	}
	if len(b) > maxBootstrap {
		return bad("is longer than %d bytes", maxBootstrap)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&s); err != nil {
		// The text of a JSON error may quote what it stumbled over.
		return bad("is not the JSON it should be")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bad("has something after its end")
	}
	u, err := url.Parse(s.Server)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return bad("names no server of the form https://address:port")
	case s.Machine == "" || len(s.Machine) > 256:
		return bad("names no machine")
	case s.Attempt < 1:
		return bad("has no attempt")
	case len(s.Token) > 1024:
		return bad("has a token that is too long")
	case !x509.NewCertPool().AppendCertsFromPEM([]byte(s.CA)):
		return bad("has no certificate of the server's authority")
	}
	s.Server = "https://" + u.Host
	return s, nil
}

// ReadBootstrap reads a seed file.
func ReadBootstrap(path string) (wire.Bootstrap, error) {
	b, err := readLimited(path, maxBootstrap+1)
	if errors.Is(err, os.ErrNotExist) {
		return wire.Bootstrap{}, muster.Errorf(muster.ENotFound, "there is no seed at %s", path).WithHint(bootstrapHint).Wrap(err)
	}
	if err != nil {
		return wire.Bootstrap{}, muster.Errorf(muster.EUnavailable, "the seed at %s cannot be read", path).WithHint("run this as root").Wrap(err)
	}
	return ParseBootstrap(b)
}

// WriteBootstrap replaces a seed file.
func WriteBootstrap(path string, s wire.Bootstrap) error {
	b, err := json.Marshal(&s)
	if err != nil {
		return err
	}
	if atomicfile.ReplaceVolatile(path, b, 0o400) == nil {
		return nil
	}
	return os.WriteFile(path, b, 0o400) // see ForgetToken
}

// ForgetToken rewrites a seed file without its token. What else the file says
// stays, for an agent that starts again.
func ForgetToken(path string) error {
	b, err := readLimited(path, maxBootstrap)
	if err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return errors.New("the seed is not a JSON object")
	}
	spent := false
	for k, v := range all {
		if strings.EqualFold(k, "token") && string(v) != `""` {
			delete(all, k)
			spent = true
		}
	}
	if !spent {
		return nil
	}
	if b, err = json.Marshal(all); err != nil {
		return err
	}
	if atomicfile.ReplaceVolatile(path, b, 0o400) == nil {
		return nil
	}
	// A file that is mounted on its own cannot be replaced, only overwritten.
	return os.WriteFile(path, b, 0o400)
}

func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, errors.New(path + " is too large")
	}
	return b, err
}
