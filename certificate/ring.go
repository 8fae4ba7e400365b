package certificate

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate/canonical"
)

// MaxKeys bounds the bytes of a file of keys.
const MaxKeys = 1 << 20

// Ring is a server's list of public keys: the one that signs now, and those
// that did before.
type Ring struct {
	Keys []muster.SigningKey `json:"keys"`
}

// NewKey is an entry for a key that signs from then on.
func NewKey(k PublicKey, from time.Time) muster.SigningKey {
	return muster.SigningKey{ID: k.ID(), Key: k.Base64(), From: from}
}

// ParseKeys reads public keys in any of three forms: PEM blocks PUBLIC KEY, the
// 32 bytes of a key in base64 (one on a line), or a Ring in JSON. The error is
// EInvalid.
func ParseKeys(data []byte) (Ring, error) {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) > MaxKeys:
		return Ring{}, notAKey("it is longer than %d bytes", MaxKeys)
	case len(data) == 0:
		return Ring{}, notAKey("it is empty")
	case data[0] == '{':
		return parseRing(data)
	case bytes.Contains(data, []byte("-----BEGIN ")):
		return parsePEM(data)
	}
	var ring Ring
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		k, err := parseBase64(line)
		if err != nil {
			return Ring{}, err
		}
		ring.Keys = append(ring.Keys, NewKey(k, time.Time{}))
	}
	return ring.Join(Ring{}), nil
}

func parsePEM(data []byte) (Ring, error) {
	var ring Ring
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		data = rest
		switch {
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return Ring{}, muster.Errorf(muster.EInvalid, "this is a private key: whoever has it can sign in the server's name").
				WithHint("give the public key; if this file was where others could read it, mark the key as compromised")
		case block.Type != "PUBLIC KEY":
			return Ring{}, notAKey("it holds a %s", block.Type)
		}
		k, err := parseDER(block.Bytes)
		if err != nil {
			return Ring{}, err
		}
		ring.Keys = append(ring.Keys, NewKey(k, time.Time{}))
	}
	if len(ring.Keys) == 0 {
		return Ring{}, notAKey("its PEM block cannot be read")
	}
	return ring.Join(Ring{}), nil
}

func parseRing(data []byte) (Ring, error) {
	data, err := canonical.JSON(data)
	if err != nil {
		return Ring{}, notAKey("%v", err)
	}
	var ring Ring
	if err := json.Unmarshal(data, &ring); err != nil {
		return Ring{}, notAKey("its JSON is not a list of keys")
	}
	if len(ring.Keys) == 0 {
		return Ring{}, notAKey("its JSON has no keys")
	}
	for _, k := range ring.Keys {
		public, err := parseBase64(k.Key)
		if err != nil {
			return Ring{}, err
		}
		if k.ID != public.ID() {
			return Ring{}, notAKey("the key %s has another fingerprint than its list says", public.ID())
		}
	}
	return ring.Join(Ring{}), nil
}

// Join puts two lists together. Of a key that is in both, the narrower time is
// kept, and that it is compromised.
func (r Ring) Join(other Ring) Ring {
	var out Ring
	at := map[string]int{}
	for _, list := range [][]muster.SigningKey{r.Keys, other.Keys} {
		for _, k := range list {
			i, ok := at[k.ID]
			if !ok {
				at[k.ID] = len(out.Keys)
				out.Keys = append(out.Keys, k)
				continue
			}
			have := &out.Keys[i]
			if k.From.After(have.From) {
				have.From = k.From
			}
			have.Until = earliest(have.Until, k.Until)
			have.Compromised = earliest(have.Compromised, k.Compromised)
		}
	}
	return out
}

// earliest takes the zero time for never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

func (r Ring) find(id string) (muster.SigningKey, bool) {
	for _, k := range r.Keys {
		if k.ID == id {
			return k, true
		}
	}
	return muster.SigningKey{}, false
}
