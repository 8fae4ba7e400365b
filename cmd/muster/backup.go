package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon"
	"github.com/spf13/cobra"
)

// stateOr is the state directory that is meant: the one that is named, or that of the
// server that commands speak to, where it is on this host.
func stateOr(named string) string {
	if named != "" {
		return named
	}
	if path, ok := strings.CutPrefix(os.Getenv("MUSTER_SERVER"), "unix:"); ok && filepath.IsAbs(path) {
		return filepath.Dir(path)
	}
	return "/var/lib/muster"
}

func backupCommand() *cobra.Command {
	var state, from string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write what a site knows into one file, while its server runs",
		Long: `Write the records, keys and notes of a state directory into one new file, for its
owner alone (mode 0600), as they are at one moment. The server may run, and does
not notice. The file is read again as a whole before it has its name.

It holds every secret of the site. With --passphrase-file it is sealed (age,
scrypt); without, whoever can read it can read them.

Not in it: images (they are built again), the data of volumes (back them up as
any other data), and what was used over time.`,
		Example: `  muster backup /mnt/backup/muster-2026-01-31 --passphrase-file /root/muster.pass
  muster backup verify /mnt/backup/muster-2026-01-31 --passphrase-file /root/muster.pass`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pass, err := passphrase(from)
			if err != nil {
				return err
			}
			c, err := daemon.Backup(cmd.Context(), stateOr(state), args[0], pass, version)
			if err != nil {
				return err
			}
			cmd.Printf("%s: %d files of site %s, epoch %d, read again and whole\n", args[0], len(c.Files), c.Instance, c.Epoch)
			if pass == "" {
				cmd.PrintErrln("note: it is not sealed and holds the keys of the site; --passphrase-file FILE seals it")
			}
			return nil
		},
	}
	verify := &cobra.Command{
		Use: "verify FILE", Short: "Read a backup as a whole", Args: cobra.ExactArgs(1),
		Example: "  muster backup verify /mnt/backup/muster-2026-01-31 --passphrase-file /root/muster.pass",
		Long:    "Read a backup and compare every file in it with its digest. Nothing is written.",
		RunE: func(cmd *cobra.Command, args []string) error {
			pass, err := passphrase(from)
			if err != nil {
				return err
			}
			c, err := daemon.VerifyBackup(args[0], pass)
			if err != nil {
				return err
			}
			cmd.Printf("%s: whole: %d files of site %s, epoch %d, made %s\n", args[0], len(c.Files), c.Instance, c.Epoch, c.Made.Format("2006-01-02 15:04:05 UTC"))
			return nil
		},
	}
	cmd.AddCommand(verify)
	cmd.PersistentFlags().StringVar(&from, "passphrase-file", "", "file whose first line seals the backup")
	cmd.Flags().StringVar(&state, "state", "", "state directory of the server (default that of MUSTER_SERVER's socket, or /var/lib/muster)")
	return cmd
}

func restoreCommand() *cobra.Command {
	var (
		state, from string
		replace     bool
	)
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Bring back what a site knew from a backup",
		Long: `Put the records and keys of a backup into a state directory whose store is lost, or
with --replace also into one that has a store. No server may run there. What was
there is moved to a folder beside, and the whole can be done again if it is cut
off. The restored records begin a new epoch, which alone nodes obey: a server that still
runs on another host with what was backed up stops acting as soon as a node of it comes
there. Stop it before, if you can reach it.

What happened after the backup cannot be known: people whose rights were taken
since have them again, and clusters deleted since are there again, until you take
them away again. One-time tokens are void, and free machines are cleaned again.
Machines that run and that the backup
does not know are named by the next start, which touches nothing until you have
answered (muster cleanup --unknown).`,
		Example: "  muster restore /mnt/backup/muster-2026-01-31 --passphrase-file /root/muster.pass --state /var/lib/muster",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pass, err := passphrase(from)
			if err != nil {
				return err
			}
			state = stateOr(state)
			c, aside, err := daemon.Restore(cmd.Context(), args[0], pass, state, replace)
			if err != nil {
				return err
			}
			cmd.Printf("%s is as it was at %s; start the server\n", state, c.Made.Format("2006-01-02 15:04:05 UTC"))
			if _, err := os.Stat(aside); err == nil {
				cmd.Printf("what was there is in %s\n", aside)
			}
			cmd.PrintErrln("note: rights that were taken and clusters that were deleted since are there again: look at `muster user list`, `muster token list` and `muster list`")
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "passphrase-file", "", "file whose first line the backup was sealed with")
	cmd.Flags().StringVar(&state, "state", "", "state directory of the server (default that of MUSTER_SERVER's socket, or /var/lib/muster)")
	cmd.Flags().BoolVar(&replace, "replace", false, "put the store that is there aside")
	return cmd
}

// passphrase reads the first line of a file; "" where none is named.
func passphrase(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", muster.Errorf(muster.EInvalid, "--passphrase-file %s cannot be read", file).WithHint("name a file with the passphrase in its first line").Wrap(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimRight(line, "\r"); len(line) < 8 {
		return "", muster.Errorf(muster.EInvalid, "the passphrase in %s is too short", file).WithHint("its first line must have 8 characters or more")
	}
	return line, nil
}
