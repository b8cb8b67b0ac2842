package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newCheckCommand() *cobra.Command {
	return &cobra.Command{Use: "check", Hidden: true, RunE: func(*cobra.Command, []string) error { return errors.New("to be written") }}
}
