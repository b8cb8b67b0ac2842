// Command penstock is the gate in front of a Kubernetes GPU fleet: the manager
// that runs in the cluster, and the tools that say offline what it would say.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is stamped by the build.
var version = "unknown"

func main() {
	os.Exit(int(exitStatus(newRootCommand().ExecuteContext(ctrl.SetupSignalHandler()), os.Stderr)))
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "penstock",
		Short:         "The gate in front of a Kubernetes GPU fleet",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newManagerCommand(), newCheckCommand(), newConvertCommand(), newMigrateCommand(), newPolicyCommand(), newVersionCommand())
	return root
}

// exitStatus gives the code that the process ends with, and writes the error
// unless everything was said.
func exitStatus(err error, stderr io.Writer) exitCode {
	if err == nil {
		return 0
	}
	code := exitCode(1)
	if errors.As(err, &code); error(code) != err { //nolint:errorlint // Wrapped, the error has more to say.
		fmt.Fprintln(stderr, "Error:", err)
	}
	return code
}

// An exitCode ends the process with a code. Alone, it does so after everything
// was said; wrapped by an error, after that.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }
