package cli

import (
	"errors"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// refuseEmpty makes every command refuse an argument or the value of a flag that
// is empty: an unset variable of a shell script must not come to mean something
// else, such as all clusters in place of one, or the head in place of a node.
func refuseEmpty(c *cobra.Command) {
	for _, sub := range c.Commands() {
		refuseEmpty(sub)
	}
	if c.DisableFlagParsing || c.RunE == nil {
		return
	}
	judge := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if err := emptyFlag(c); err != nil {
			return err
		}
		for i, arg := range ownArgs(c, args) {
			if strings.TrimSpace(arg) == "" {
				return muster.Errorf(muster.EInvalid, "%s is empty", argName(c.Use, i)).Because(muster.ReasonRequired).WithHint("is a shell variable unset? See '%s --help'", c.CommandPath())
			}
		}
		if judge == nil {
			return nil
		}
		err := judge(c, args)
		var known *muster.Error
		if err != nil && !errors.As(err, &known) { // of cobra itself
			return usage(c, "%s", err.Error())
		}
		return err
	}
}

// emptyFlag is the error of the first flag that was given without a value, or
// with a list that has an empty part.
func emptyFlag(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			if values = list.GetSlice(); len(values) == 0 {
				values = []string{""}
			}
		}
		for _, v := range values {
			if err == nil && strings.TrimSpace(v) == "" {
				err = muster.Errorf(muster.EInvalid, "--%s is empty", f.Name).Because(muster.ReasonRequired).
					WithHint("give it a value, or leave it out; is a shell variable unset?")
			}
		}
	})
	return err
}

// ownArgs are the arguments that are Muster's, not those of a command that it
// runs, and not a text, which may be empty.
func ownArgs(c *cobra.Command, args []string) []string {
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		args = args[:dash]
	}
	if c.Name() == "exec" || c.Name() == "note" {
		args = args[:min(1, len(args))]
	}
	return args
}

// argName is what the line of usage calls the argument at a place, from 0.
func argName(use string, at int) string {
	var names []string
	for _, word := range strings.Fields(use)[1:] {
		if word == "|" && len(names) > 0 {
			break
		}
		if word = strings.Trim(word, "[]()."); word != "" && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			names = append(names, word)
		}
	}
	if len(names) == 0 {
		return "an argument"
	}
	return names[min(at, len(names)-1)]
}
