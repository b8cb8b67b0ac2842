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
		code := exitCode(1)
		silent := errors.As(err, &code) && error(code) == err
		if !silent {
			fmt.Fprintln(os.Stderr, "Error:", err)
		}
		os.Exit(int(code))
	}
}

// An exitCode ends the process with a code. Alone, it does so after everything
// was said; wrapped by an error, after that.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }
