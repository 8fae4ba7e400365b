package ipmi

import (
	"errors"
	"fmt"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power/rmcp"
)

// refusal is an answer of the controller that is no.
type refusal struct {
	err   *muster.Error
	suite bool // another cipher suite may do
	odd   bool // the key exchange was not understood: ipmitool may do
}

func (r *refusal) Error() string { return r.err.Message }
func (r *refusal) Unwrap() error { return r.err }

func isRefusal(err error) bool {
	var r *refusal
	return errors.As(err, &r)
}

// strange reports whether another program may succeed where we did not: never
// for a wrong password, because tries are counted.
func strange(err error) bool {
	var r *refusal
	return errors.As(err, &r) && (r.odd || r.suite)
}

// refusedSession makes an error of how opening a session ended.
func refusedSession(s rmcp.Status) error {
	text := "its IPMI controller opens no session: " + s.String()
	switch s {
	case rmcp.StatusNoResources:
		return &refusal{err: muster.Errorf(muster.EUnavailable, "%s", text).Because(muster.ReasonControllerUnreachable).WithHint("end other sessions with the controller, or wait until it drops them")}
	case rmcp.StatusBadCode, rmcp.StatusBadName:
		return &refusal{err: muster.Errorf(muster.EUnauth, "%s", text).Because(muster.ReasonControllerRefuses).WithHint("correct the account or the password of the machine's power address")}
	case rmcp.StatusBadRole, rmcp.StatusNoRole:
		return &refusal{err: muster.Errorf(muster.EForbidden, "%s", text).Because(muster.ReasonControllerRefuses).WithHint("give the account operator's privilege")}
	case 0x04, 0x05, 0x10, rmcp.StatusNoSuite:
		return &refusal{suite: true, err: muster.Errorf(muster.EInvalid, "%s", text).WithHint("allow cipher suite 17 or 3 in the controller")}
	}
	return &refusal{odd: true, err: muster.Errorf(muster.EUnavailable, "%s", text).Because(muster.ReasonControllerUnreachable).WithHint("restart the controller, or update its firmware")}
}

func oddSession(text string) error {
	return &refusal{odd: true, err: muster.Errorf(muster.ECorrupt, "%s", text).Because(muster.ReasonControllerNonsense).WithHint("update the controller's firmware, or install ipmitool on this server")}
}

// otherKeys is the error of a controller that knows the password, and that derived other
// keys for the session: it has a key K_G that it was not told, or another one.
func otherKeys() error {
	return &refusal{err: muster.Errorf(muster.EUnauth, "its IPMI controller derived other keys for the session: its key K_G is another one, or its password").
		Because(muster.ReasonControllerRefuses).
		WithHint("give the controller's key K_G with --power-key-file FILE (power_key_file in CSV, key_file in YAML), or clear it in the controller; see its password, too")}
}

// refusedBy makes an error of a command's completion code.
func refusedBy(command byte, code rmcp.Code) error {
	text := fmt.Sprintf("its IPMI controller refuses command %#02x: %s", command, code)
	switch code {
	case rmcp.CodeBusy, rmcp.CodeTimeout, rmcp.CodeNotNow, rmcp.CodeUnspecified:
		return &refusal{err: muster.Errorf(muster.EUnavailable, "%s", text).Because(muster.ReasonControllerUnreachable)}
	case rmcp.CodeNoPrivilege:
		return &refusal{err: muster.Errorf(muster.EForbidden, "%s", text).Because(muster.ReasonControllerRefuses).WithHint("give the account operator's privilege, or use the quirk administrator")}
	case rmcp.CodeRoleExceeds:
		if command == rmcp.SetPrivilege {
			return &refusal{err: muster.Errorf(muster.EForbidden, "%s", text).Because(muster.ReasonControllerRefuses).WithHint("give the account operator's privilege")}
		}
	}
	return &refusal{err: muster.Errorf(muster.EInvalid, "%s", text)}
}
