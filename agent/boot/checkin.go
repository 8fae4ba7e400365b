package boot

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Server is where hellos go.
type Server struct {
	Settings Settings
	Version  string
	Now      func() time.Time
	key      ed25519.PrivateKey
	ca       string // PEM, once it was seen
}

// NewServer makes a Server with a key of its own: it dies with this program.
func NewServer(s Settings, version string, now func() time.Time) (*Server, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	return &Server{Settings: s, Version: version, Now: now, key: key}, nil
}

// Key is the public part of the key.
func (s *Server) Key() []byte { return s.key.Public().(ed25519.PublicKey) }

// CA is the certificate of the server's authority, in PEM; "" before the first
// answer.
func (s *Server) CA() string { return s.ca }

// checkInTime is how long one exchange may take.
const checkInTime = 20 * time.Second

// CheckIn makes one exchange, over a connection of its own: the proof of the key is
// bound to it. Protocol, version, boot and key are filled in.
func (s *Server) CheckIn(ctx context.Context, h wire.BootCheckIn) (*wire.BootReply, error) {
	ctx, cancel := context.WithTimeout(ctx, checkInTime)
	defer cancel()
	h.Protocol, h.Version, h.Boot, h.Key = wire.BootProtocol, s.Version, s.Settings.Boot, s.Key()
	body, err := json.Marshal(&h)
	if err != nil {
		return nil, muster.Errorf(muster.EInternal, "the check-in cannot be written").Wrap(err)
	}
	conn, err := dialPinned(ctx, s.Settings.Server, s.Settings.Authority, s.Now)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	state := conn.ConnectionState()
	s.ca = authorityPEM(state, s.Settings.Authority)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Settings.Server+wire.BootPath, bytes.NewReader(body))
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the server's address is not one").Wrap(err)
	}
	proof, err := s.proof(state, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "muster-agent/"+s.Version)
	req.Header.Set(wire.BootProofHeader, proof)
	req.Close = true
	if err := req.Write(conn); err != nil {
		return nil, cutOff(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, wire.MaxBootReply+64<<10)), req)
	if err != nil {
		return nil, cutOff(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, wire.MaxBootReply+1))
	if err != nil {
		return nil, cutOff(err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, refusal(resp.StatusCode, b)
	}
	return wire.DecodeBootReply(b)
}

func cutOff(err error) error {
	return muster.Errorf(muster.EUnavailable, "the server's answer was cut off").Wrap(err)
}

// proof shows that who sends the hello over this connection holds its key.
func (s *Server) proof(c tls.ConnectionState, body []byte) (string, error) {
	exported, err := c.ExportKeyingMaterial(wire.BootExporter, nil, 32)
	if err != nil {
		return "", muster.Errorf(muster.EInternal, "the check-in cannot be proven").Wrap(err)
	}
	return base64.StdEncoding.EncodeToString(ed25519.Sign(s.key, wire.BootProofText(exported, sha256.Sum256(body)))), nil
}

// refusal makes an error of an answer that is no success.
func refusal(status int, body []byte) error {
	e := muster.Errorf(codeOf(status), "the server answered %d %s", status, http.StatusText(status))
	var said struct {
		Code    muster.Code `json:"code"`
		Message string      `json:"message"`
		Hint    string      `json:"hint"`
	}
	if json.Unmarshal(body, &said) == nil && said.Message != "" {
		e.Message, e.Hint = "the server refuses: "+plain(said.Message), plain(said.Hint)
	}
	return e
}

func codeOf(status int) muster.Code {
	switch status {
	case http.StatusUnauthorized:
		return muster.EUnauth
	case http.StatusForbidden:
		return muster.EForbidden
	case http.StatusNotFound:
		return muster.ENotFound
	case http.StatusConflict, http.StatusGone:
		return muster.EConflict
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return muster.EInvalid
	}
	return muster.EUnavailable
}

// refused reports whether the server said no, rather than nothing.
func refused(err error) bool {
	switch muster.CodeOf(err) {
	case muster.EUnauth, muster.EForbidden, muster.ENotFound, muster.EConflict, muster.EInvalid:
		return true
	}
	return errors.Is(err, context.Canceled)
}
