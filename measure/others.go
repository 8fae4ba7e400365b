package measure

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// disturbedTimes is in how many measurements running somebody must have used a
// machine's processors before its administrators are told: once is a backup.
const disturbedTimes = 3

// tellOthers gives the machines of new certificates the condition that others use
// their processors whenever they are measured, or takes it from them. It condemns
// nobody: what is slow may be the neighbour's doing, and only a look at the host tells.
func tellOthers(tx *store.Tx, certs []muster.Certificate, now time.Time) error {
	for _, c := range certs {
		m, err := tx.Machine(c.Machine)
		if muster.CodeOf(err) == muster.ENotFound {
			continue
		} else if err != nil {
			return err
		}
		has := slices.ContainsFunc(m.Conditions, isDisturbed)
		text, disturbed, known := usedByOthers(c)
		switch {
		case !known:
			continue
		case !disturbed && has:
			m.Conditions = slices.DeleteFunc(slices.Clone(m.Conditions), isDisturbed)
			if err := tx.PutMachine(m, "nobody else used its processors"); err != nil {
				return err
			}
			continue
		case !disturbed || has:
			continue
		}
		before, err := tx.Certificates(store.CertificateFilter{Machine: c.Machine, Kind: muster.CertifiesNode, Limit: disturbedTimes})
		if err != nil {
			return err
		}
		var ids []muster.CertificateID
		for _, b := range before {
			ids = append(ids, b.ID)
		}
		last, err := tx.CertificateContents(ids...)
		if err != nil {
			return err
		}
		quiet := slices.ContainsFunc(last, func(c muster.Certificate) bool { _, disturbed, _ := usedByOthers(c); return !disturbed })
		if quiet || len(last) < disturbedTimes {
			continue
		}
		m.Conditions = append(slices.Clone(m.Conditions), muster.Condition{
			Code: muster.ConditionDisturbed, Since: now,
			Text: fmt.Sprintf("others used its processors in %d measurings running, so that it cannot be certified: %s", disturbedTimes, text),
			Hint: "look at what runs on its host; then measure it again",
		})
		if err := tx.PutMachine(m, "others use its processors: "+text); err != nil {
			return err
		}
	}
	return nil
}

func isDisturbed(c muster.Condition) bool { return c.Code == muster.ConditionDisturbed }

// usedByOthers reports what others used of a machine that should have been its own.
// Where it was shared by what it was given, nothing is known of that.
func usedByOthers(c muster.Certificate) (text string, disturbed, known bool) {
	for _, v := range c.Caveats {
		switch v.Code {
		case muster.CaveatDisturbed:
			text, disturbed = v.Text, true
		case "shared", "oversubscribed":
			return "", false, false
		}
	}
	return text, disturbed, true
}
