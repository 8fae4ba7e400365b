package cli

import (
	"cmp"
	"errors"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// badFlag is the error of a flag that a command has not, or of a value that
// does not suit it.
func badFlag(c *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		kind := map[string]string{"int": "a whole number", "int64": "a whole number", "bool": "true or false", "duration": "a time such as 90s, 10m, 2d or 1w"}
		f := value.GetFlag()
		if want, ok := kind[f.Value.Type()]; ok {
			return muster.Errorf(muster.EInvalid, "--%s cannot be %q", f.Name, value.GetValue()).Because(muster.ReasonBadValue).WithHint("write %s", want)
		}
	}
	why := muster.ReasonBadUsage
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		why = muster.ReasonUnknownFlag
		if short := unknown.GetSpecifiedShortnames(); short != "" && strings.Contains(c.Use, " TIME") && short[0] >= '0' && short[0] <= '9' {
			return muster.Errorf(muster.EInvalid, "%q is not a time: times are positive", "-"+short).Because(muster.ReasonBadValue).WithHint("write it without the minus: %s", short)
		}
		if unknown.GetSpecifiedName() == "state" {
			return muster.Errorf(muster.EInvalid, "%s", err.Error()).Because(why).
				WithHint("say which server: --server unix:DIRECTORY/muster.sock, or MUSTER_SERVER=unix:DIRECTORY/muster.sock for every command; --state is for those that work without one, such as serve")
		}
		if near := nearFlag(c, unknown.GetSpecifiedName()); near != "" {
			return muster.Errorf(muster.EInvalid, "%s", err.Error()).Because(why).WithHint("did you mean --%s?", near)
		}
	}
	if c.Name() == "exec" {
		return muster.Errorf(muster.EInvalid, "%s", err.Error()).Because(why).
			WithHint("flags of the command itself come after --: muster exec CLUSTER -- COMMAND...")
	}
	return muster.Errorf(muster.EInvalid, "%s", err.Error()).Because(why).WithHint("see '%s --help'", c.CommandPath())
}

// nearFlag is the flag of a command that a word is a slip of, or the beginning
// of. Words of less than three letters may be anything.
func nearFlag(c *cobra.Command, word string) string {
	if len(word) < 3 {
		return ""
	}
	var names []string
	whole := ""
	c.Flags().VisitAll(func(f *pflag.Flag) {
		names = append(names, f.Name)
		if whole == "" && strings.HasPrefix(f.Name, word) {
			whole = f.Name
		}
	})
	return cmp.Or(suggest.Of(word, names), whole)
}

// needsWait refuses a time limit of a wait that was not asked for.
func needsWait(c *cobra.Command, wait bool) error {
	if c.Flags().Changed("timeout") && !wait {
		return muster.Errorf(muster.EInvalid, "--timeout is of no use without --wait").Because(muster.ReasonContradiction).WithHint("say --wait too, or leave it out")
	}
	return nil
}
