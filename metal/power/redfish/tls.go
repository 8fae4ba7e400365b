package redfish

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"net"

	"github.com/muster-hpc/muster"
)

// tlsConfig is how a controller is recognised. One whose certificate is pinned may be as
// old as it likes: the pin takes the place of all other checks (controllers have
// certificates that sign themselves, for other names), and for its sake TLS 1.0 and key
// exchange by RSA are spoken, which controllers of before 2015 know alone. What they send
// can be read by who steals their key later, and by nobody else.
func tlsConfig(a muster.PowerAddress, host string) (*tls.Config, error) {
	if pin, err := hex.DecodeString(a.CertificateSHA256); err == nil && len(pin) == sha256.Size {
		return &tls.Config{
			ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, CipherSuites: suites(),
			VerifyConnection: func(s tls.ConnectionState) error { return checkPin(s, [sha256.Size]byte(pin)) },
		}, nil
	}
	conf := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if !conf.RootCAs.AppendCertsFromPEM([]byte(a.Authority)) {
		return nil, muster.Errorf(muster.EInvalid, "the authority of its controller's certificate cannot be read").Because(muster.ReasonBadCertificate)
	}
	return conf, nil
}

// suites are the usual ones, and after them those with key exchange by RSA, which Go does
// not offer by itself any more.
func suites() []uint16 {
	var list []uint16
	for _, s := range tls.CipherSuites() {
		list = append(list, s.ID)
	}
	return append(list, tls.TLS_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_128_CBC_SHA256,
		tls.TLS_RSA_WITH_AES_256_CBC_SHA, tls.TLS_RSA_WITH_AES_128_CBC_SHA)
}

// pinError reports which certificate was shown.
type pinError struct{ shown string }

func (e pinError) Error() string { return "the certificate is sha256:" + e.shown }

func checkPin(s tls.ConnectionState, pin [sha256.Size]byte) error {
	sum := sha256.Sum256(s.PeerCertificates[0].Raw)
	if subtle.ConstantTimeCompare(sum[:], pin[:]) != 1 {
		return pinError{shown: hex.EncodeToString(sum[:])}
	}
	return nil
}

// handshakeError is what kept a connection that stands from being encrypted.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// dialTLS connects, and tells a host that is not there from one whose TLS is another.
func dialTLS(conf *tls.Config) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTime}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		within, cancel := context.WithTimeout(ctx, dialTime)
		defer cancel()
		conn := tls.Client(raw, conf)
		if err := conn.HandshakeContext(within); err != nil {
			_ = raw.Close()
			return nil, &handshakeError{err}
		}
		return conn, nil
	}
}

// noTLS makes an error of a handshake that failed for another reason than the certificate.
func noTLS(place string, pinned bool, err *handshakeError) error {
	var record tls.RecordHeaderError
	if errors.As(err, &record) {
		return muster.Errorf(muster.EUnavailable, "what answers at %s speaks no TLS", place).Because(muster.ReasonControllerUnreachable).
			WithHint("see that the port is that of the controller's HTTPS, and that no proxy is in between").Wrap(err)
	}
	hint := "update the controller's firmware, or have it use TLS 1.0 or newer with AES"
	if !pinned {
		hint = "update the controller's firmware; or pin its certificate (certificate_sha256): then older TLS is spoken with it"
	}
	return muster.Errorf(muster.EUnavailable, "its Redfish controller at %s and this server have no TLS in common: %v", place, err.err).
		Because(muster.ReasonControllerUnreachable).WithHint("%s", hint).Wrap(err)
}
