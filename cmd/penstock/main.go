// Command penstock is the gate in front of a Kubernetes GPU fleet: the manager
// that runs in the cluster, and the tools that say offline what it would say.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is stamped by the build.
var version = "unknown"

func main() {
	root := &cobra.Command{
		Use:           "penstock",
		Short:         "The gate in front of a Kubernetes GPU fleet",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newManagerCommand(), newCheckCommand(), newVersionCommand())
	if err := root.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		var code exitCode
		if errors.As(err, &code) {
			os.Exit(int(code))
		}
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// An exitCode ends the process with a code, after everything was said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }
