package muster

import (
	"strings"
	"time"
)

// SSHKey is what a user has on record to log in with, its terms and its last use at the gateway: a
// public key, an authority whose certificates let in, or one certificate.
type SSHKey struct {
	Fingerprint string    `json:"fingerprint" doc:"SHA256 fingerprint of the key, of a certificate that of the key in it"`
	Type        string    `json:"type"`
	Comment     string    `json:"comment,omitempty"`
	Key         string    `json:"key" doc:"One authorized_keys line"`
	Authority   bool      `json:"authority,omitempty" doc:"It lets nobody in itself: certificates that it signed do"`
	Principals  []string  `json:"principals,omitempty" doc:"Of an authority: one of these must be a principal of a certificate"`
	Certificate string    `json:"certificate,omitempty" doc:"Of a certificate: its key ID"`
	Serial      uint64    `json:"certificate_serial,omitempty" doc:"Of a certificate: its serial number"`
	Addresses   []string  `json:"addresses,omitempty" doc:"Of a certificate with source-address: from where it lets in"`
	Purpose     string    `json:"purpose,omitempty" doc:"What it is for"`
	Added       time.Time `json:"added,omitzero" doc:"Absent for keys that were added before this was recorded"`
	Expires     time.Time `json:"expires,omitzero" doc:"From then on it lets nobody in; absent: never"`
	Used        time.Time `json:"used,omitzero" doc:"When it last opened a session at the gateway"`
	UsedFrom    string    `json:"used_from,omitempty" doc:"From which address"`
	UsedDoor    Door      `json:"used_door,omitempty" doc:"Through which door: jump or plain"`
}

// Expired reports whether a key lets nobody in any more.
func (k SSHKey) Expired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// IsCertificate reports whether it is one certificate.
func (k SSHKey) IsCertificate() bool { return strings.HasSuffix(k.Type, "-cert-v01@openssh.com") }

// Kind is what it is, in words.
func (k SSHKey) Kind() string {
	switch {
	case k.Authority:
		return "an authority"
	case k.IsCertificate():
		return "a certificate"
	}
	return "a key"
}

// Under is a key with the terms on record of it, of which it may have an end of its own.
func (k SSHKey) Under(terms SSHKey) SSHKey {
	k.Purpose, k.Added, k.Used, k.UsedFrom, k.UsedDoor = terms.Purpose, terms.Added, terms.Used, terms.UsedFrom, terms.UsedDoor
	if k.Expires.IsZero() || !terms.Expires.IsZero() && terms.Expires.Before(k.Expires) {
		k.Expires = terms.Expires
	}
	return k
}

// DoorKey is by what a user came to a door: a key on record, or a certificate that one lets in.
type DoorKey struct {
	Fingerprint string           // of the key on record
	Certificate *DoorCertificate // nil: a key
}

// DoorCertificate is what a door must know of a certificate.
type DoorCertificate struct {
	ID        string // key ID
	Serial    uint64
	Ends      time.Time // the zero value: never
	Addresses string    // where it lets in from, as OpenSSH writes it, if Limited
	Limited   bool      // to Addresses
	Command   bool      // it allows one command only
	Terminal  bool      // it permits terminals
	Forwards  bool      // and forwarding of ports
}
