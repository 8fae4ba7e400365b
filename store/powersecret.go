package store

import (
	"crypto/subtle"
	"errors"

	"github.com/muster-hpc/muster"
)

// Tables of what proves to controllers that it is Muster who asks.
const (
	powerSecrets = "power_secrets"
	powerKeys    = "power_keys"
)

// PutPowerSecret keeps what proves to the controller of a bare machine that it is
// Muster who asks. An empty one is forgotten. Nothing of it is in the audit.
func (tx *Tx) PutPowerSecret(id muster.MachineID, value []byte) error {
	return tx.putPower(powerSecrets, id, value)
}

// IsPowerSecret reports whether it is the one that is kept, to those who may change it.
func (tx *Tx) IsPowerSecret(id muster.MachineID, value []byte) (bool, error) {
	return tx.isPower(powerSecrets, id, value)
}

// PowerSecret returns it. Only Muster itself may ask; administrators may not, who can
// replace it. ENotFound: there is none.
func (tx *Tx) PowerSecret(id muster.MachineID) ([]byte, error) {
	return tx.power(powerSecrets, id, muster.Errorf(muster.ENotFound, "machine %.70q has no password of a controller", string(id)).
		Because(muster.ReasonNotRegistered).WithHint("give one: muster machine add --replace ... --power-password-file FILE"))
}

// PutPowerKey keeps the key K_G of the controller of a bare machine, as PutPowerSecret its
// password.
func (tx *Tx) PutPowerKey(id muster.MachineID, value []byte) error {
	return tx.putPower(powerKeys, id, value)
}

// IsPowerKey reports whether it is the one that is kept, to those who may change it. An
// empty one is, where there is none.
func (tx *Tx) IsPowerKey(id muster.MachineID, value []byte) (bool, error) {
	return tx.isPower(powerKeys, id, value)
}

// PowerKey returns it, as PowerSecret the password. ENotFound: there is none.
func (tx *Tx) PowerKey(id muster.MachineID) ([]byte, error) {
	return tx.power(powerKeys, id, muster.Errorf(muster.ENotFound, "machine %.70q has no key of a controller", string(id)).
		Because(muster.ReasonNotRegistered).WithHint("give one: muster machine add --replace ... --power-key-file FILE"))
}

func (tx *Tx) putPower(table string, id muster.MachineID, value []byte) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, record{kind: "registration"}, noRegistration(id)); err != nil {
		return err
	}
	if _, err := tx.Registration(id); err != nil {
		return err
	}
	if len(value) == 0 {
		_, err := tx.s.exec(`DELETE FROM `+table+` WHERE machine = ?`, string(id))
		return err
	}
	_, err := tx.s.exec(`INSERT INTO `+table+` (machine, sum, value) VALUES (?, ?, ?)
		ON CONFLICT (machine) DO UPDATE SET sum = excluded.sum, value = excluded.value`, string(id), sumOf(value), value)
	return err
}

func (tx *Tx) isPower(table string, id muster.MachineID, value []byte) (bool, error) {
	if err := authorize(tx.who, write, record{kind: "registration"}, noRegistration(id)); err != nil {
		return false, err
	}
	var have []byte
	err := tx.s.one([]any{&have}, `SELECT value FROM `+table+` WHERE machine = ?`, string(id))
	if errors.Is(err, errNoRow) {
		return table == powerKeys && len(value) == 0, nil
	}
	return subtle.ConstantTimeCompare(have, value) == 1, err
}

func (tx *Tx) power(table string, id muster.MachineID, absent *muster.Error) ([]byte, error) {
	if err := authorize(tx.who, read, record{kind: "secret"}, absent); err != nil {
		return nil, err
	}
	var sum int64
	var value []byte
	err := tx.s.one([]any{&sum, &value}, `SELECT sum, value FROM `+table+` WHERE machine = ?`, string(id))
	if errors.Is(err, errNoRow) {
		return nil, absent
	}
	if err == nil && sumOf(value) != sum {
		return nil, corrupt("the secret of "+string(id), errors.New("the checksum does not match"))
	}
	return value, err
}
