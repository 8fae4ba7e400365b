package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/spf13/cobra"
)

func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func (a *app) completionScript() *cobra.Command {
	var bare bool
	c := &cobra.Command{
		Use: "completion SHELL", Short: "Generate a shell completion script", Args: exactly("SHELL"),
		Long: `Generates a completion script for bash, zsh, fish or powershell. It completes commands,
flags, and the names of clusters, nodes, images, machines, volumes and users. Bash needs the package bash-completion; zsh needs "autoload -U compinit; compinit"
before it.`,
		Example: `  source <(muster completion bash)                                  # this shell
  muster completion bash > /etc/bash_completion.d/muster            # every new one, as root
  muster completion zsh > "${fpath[1]}/_muster"
  muster completion fish > ~/.config/fish/completions/muster.fish
  muster completion powershell | Out-String | Invoke-Expression`,
		ValidArgsFunction: cobra.FixedCompletions(shells(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(c *cobra.Command, args []string) error {
			out, root := a.env.Out, c.Root()
			switch args[0] {
			case "bash":
				return bashScript(root, out, !bare)
			case "zsh":
				if bare {
					return root.GenZshCompletionNoDesc(out)
				}
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, !bare)
			case "powershell":
				if bare {
					return root.GenPowerShellCompletion(out)
				}
				return root.GenPowerShellCompletionWithDesc(out)
			}
			e := muster.Errorf(muster.EInvalid, "there is no completion for %q", args[0]).Because(muster.ReasonBadValue)
			if meant := suggest.Of(args[0], shells()); meant != "" {
				return e.WithHint("did you mean %s?", meant)
			}
			return e.WithHint("write one of %s", strings.Join(shells(), ", "))
		},
	}
	c.Flags().BoolVar(&bare, "no-descriptions", false, "do not show descriptions")
	return c
}

// bashScript writes the script for bash. To bash a "@" ends a word, and the script that cobra
// writes knows that of ":" and "=" only: hpc@2026-11-20 must be one word for it.
func bashScript(root *cobra.Command, out io.Writer, descriptions bool) error {
	var b strings.Builder
	if err := root.GenBashCompletionV2(&b, descriptions); err != nil {
		return err
	}
	const words, special = "init_completion -n =:", `handle_special_char "$cur" =`
	text := strings.ReplaceAll(b.String(), words, words+"@")
	before, after, ok := strings.Cut(text, special+"\n")
	if ok {
		text = before + special + "\n    __" + root.Name() + `_handle_special_char "$cur" @` + "\n" + after
	}
	_, err := io.WriteString(out, text)
	return err
}

func (a *app) help() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show help for a command",
		Long: "Shows what a command does, with its flags and examples, like COMMAND --help.",
		Example: `  muster help create
  muster help machine drain`,
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			of, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range of.Commands() {
				if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), typed) {
					names = append(names, sub.Name())
				}
			}
			slices.Sort(names)
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			of, rest, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return group(of, rest)
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}
