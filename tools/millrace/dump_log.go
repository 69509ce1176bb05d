package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/dump"
	"millrace/tools/internal/output"
)

// dumpFlags are those of Kafka's DumpLogSegments.
func dumpFlags(cmd *cobra.Command) func() ([]string, dump.Options) {
	var files string
	var o dump.Options
	fs := cmd.Flags()
	fs.StringVar(&files, "files", "", "the files, with commas: .log .index .timeindex .txnindex .snapshot, checkpoints")
	fs.BoolVar(&o.Deep, "deep-iteration", false, "every record, not only every batch")
	fs.BoolVar(&o.Print, "print-data-log", false, "keys and values too")
	fs.BoolVar(&o.SkipMetadata, "skip-record-metadata", false, "only keys and values")
	fs.BoolVar(&o.SanityCheck, "index-sanity-check", false, "of an index only whether it passes the check of a start")
	fs.BoolVar(&o.VerifyOnly, "verify-index-only", false, "of an index only what does not fit the log")
	fs.BoolVar(&o.Offsets, "offsets-decoder", false, "keys and values are those of __consumer_offsets")
	fs.Int64Var(&o.MaxBytes, "max-bytes", 0, "read so many bytes of a log at most; 0: all")
	fs.Int("max-message-size", 5242880, "accepted as Kafka's option; batches of any size are read")
	return func() ([]string, dump.Options) { return splitNames(files), o }
}

func newDumpLogScript() *cobra.Command {
	cmd := &cobra.Command{Use: "kafka-dump-log.sh", Short: "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly corrupt log segment."}
	chosen := dumpFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		files, o := chosen()
		if len(files) == 0 {
			return errors.New("Missing required argument \"[files]\"") //nolint:staticcheck // Kafka's words
		}
		return dumpFiles(cmd, files, o)
	}
	return cmd
}

func dumpFiles(cmd *cobra.Command, files []string, o dump.Options) error {
	var all error
	for _, f := range files {
		if err := dump.File(cmd.OutOrStdout(), cmd.ErrOrStderr(), f, o); err != nil {
			all = errors.Join(all, err)
		}
	}
	return all
}

func newDumpLog() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dump-log [FILE...]",
		Short: "Print segments, indexes and snapshots; check and repair a partition's folder",
		Long: `Print the files of a data directory as Kafka's DumpLogSegments does. No broker has to
run, and a running one is not disturbed.

With --offsets-decoder commits and classic groups are shown as JSON in Kafka's words;
of the records of next-generation groups the key is, and the value is base64.`,
		Example: `  millrace dump-log data/t-0/00000000000000000000.log --print-data-log
  millrace dump-log --files data/t-0/00000000000000000000.index --index-sanity-check
  millrace dump-log check data
  millrace dump-log check data/t-0
  millrace dump-log repair data/t-0 --dry-run`,
	}
	chosen := dumpFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		files, o := chosen()
		if files = append(files, args...); len(files) == 0 {
			return cli.Usagef("name the files to print")
		}
		return dumpFiles(cmd, files, o)
	}
	cmd.AddCommand(newDumpCheck(), newDumpRepair())
	return cmd
}

func newDumpCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check DATA_DIR|FOLDER|FILE...",
		Short: "Read every batch, index and snapshot and say what is damaged; nothing is changed",
		Long: `Read every batch of a partition's folder down to its records, its indexes and its
snapshots, and say what is wrong; of a data directory, each folder in it. Nothing is changed. Exit status 1 if records are
damaged or gone; an index or snapshot that the broker makes again is only named.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			damaged := 0
			var all error
			for _, arg := range args {
				folders, err := dump.Folders(arg)
				all = errors.Join(all, err)
				for _, path := range folders {
					found, err := dump.Check(path)
					if err != nil {
						all = errors.Join(all, err)
						continue
					}
					for _, f := range found {
						if len(folders) > 1 {
							f.File = filepath.Join(filepath.Base(path), f.File)
						}
						fmt.Fprintln(cmd.OutOrStdout(), f)
						if f.Fatal {
							damaged++
						}
					}
					if len(found) == 0 {
						fmt.Fprintf(cmd.OutOrStdout(), "ok %s\n", path)
					}
				}
			}
			if damaged > 0 {
				all = errors.Join(all, fmt.Errorf("damaged places: %d; 'millrace dump-log repair' saves what is whole", damaged))
			}
			return all
		},
	}
}

func newDumpRepair() *cobra.Command {
	var backup string
	var dry, json bool
	var end int64
	cmd := &cobra.Command{
		Use:   "repair FOLDER",
		Short: "Write the damaged segments of a partition's folder anew with the batches that are whole",
		Long: `Write the damaged segments of a partition's folder anew with the batches that are
whole, in the order of their offsets. The old files are kept in the backup folder.
The broker of the data directory must be stopped. Offsets never change; those that
are lost stay without records. If the broker's error says that records up to an
offset were acknowledged, name it with --end: the log is then taken for whole.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := filepath.Clean(args[0])
			if backup == "" {
				backup = fmt.Sprintf("%s.backup-%s", dir, time.Now().UTC().Format("20060102-150405"))
			}
			saved, err := dump.Repair(dir, backup, end, dry)
			if err != nil {
				return err
			}
			if json {
				return output.JSON(cmd.OutOrStdout(), saved)
			}
			for _, s := range saved {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %d batches (%d bytes) kept, %d bytes lost from offset %d on, %d offsets at the end left without records\n", s.File, s.Kept, s.KeptBytes, s.LostBytes, s.FirstLost, s.Filled)
			}
			switch {
			case len(saved) == 0:
				fmt.Fprintln(cmd.OutOrStdout(), "nothing is damaged; nothing was changed")
			case dry:
				fmt.Fprintln(cmd.OutOrStdout(), "nothing was changed (--dry-run)")
			default:
				fmt.Fprintf(cmd.OutOrStdout(), "the old files are in %s\n", backup)
			}
			return nil
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&backup, "backup", "", "folder for the old files (default: beside the partition's folder)")
	fs.BoolVar(&dry, "dry-run", false, "say what would be done")
	fs.Int64Var(&end, "end", -1, "the log is to reach this offset (default: what recovery-point-offset-checkpoint says)")
	fs.BoolVar(&json, "json", false, "print the answer as JSON")
	return cmd
}
