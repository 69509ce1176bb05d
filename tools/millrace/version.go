package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
	"millrace/wire"
)

// versionInfo is what 'millrace version --json' writes.
type versionInfo struct {
	Version  string       `json:"version"`
	Go       string       `json:"go"`
	Platform string       `json:"platform"`
	APIs     []apiVersion `json:"apis"`
}

type apiVersion struct {
	Key  int16  `json:"key"`
	Name string `json:"name"`
	Min  int16  `json:"min"`
	Max  int16  `json:"max"`
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what the broker speaks",
		Long:  "Print the version, the Go version it was built with, and the Kafka requests and versions that the broker speaks.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := versionInfo{client.Version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, nil}
			var ranges []string
			for _, api := range wire.APIs {
				info.APIs = append(info.APIs, apiVersion{api.Key, api.Name, api.Min, api.Max})
				ranges = append(ranges, fmt.Sprintf("%s %d-%d", api.Name, api.Min, api.Max))
			}
			out := cmd.OutOrStdout()
			if asJSON {
				return output.JSON(out, info)
			}
			fmt.Fprintf(out, "millrace %s\n%s %s\nprotocol %s\n", info.Version, info.Go, info.Platform, strings.Join(ranges, ", "))
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
