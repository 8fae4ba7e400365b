package muster

// UIDs of people. Those below belong to systems; nothing above the last fits everywhere:
// programs keep them in 32 bits with a sign.
const (
	FirstUID = 1000
	LastUID  = 1<<31 - 2
)

// CheckUID refuses what cannot be the number of a person: EInvalid. Sites with a directory
// have numbers such as 1234601104.
func CheckUID(uid int) *Error {
	wrong := func(format string, args ...any) *Error {
		return Errorf(EInvalid, format, args...).Because(ReasonOutOfRange).
			WithHint("use one from %d to %d, without %d to 65535: systems use those", FirstUID, LastUID, firstDynamicUID)
	}
	switch {
	case uid < FirstUID || uid > LastUID:
		return wrong("uid %d is not for people", uid)
	case uid >= firstDynamicUID && uid <= lastDynamicUID:
		return wrong("uid %d is one that systemd gives to services", uid)
	case uid > lastDynamicUID && uid <= 65535:
		return wrong("uid %d is nobody's", uid)
	}
	return nil
}

// UIDs that systemd gives to services while they run: systemd.io/UIDS-GIDS.
const (
	firstDynamicUID = 61184
	lastDynamicUID  = 65519
)
