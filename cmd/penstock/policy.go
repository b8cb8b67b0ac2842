package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/check"
	"github.com/penstock-dev/penstock/cmd/penstock/policy"
)

func newPolicyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Import and test policies",
	}
	cmd.AddCommand(newPolicyImportCommand(), newPolicyTestCommand())
	return cmd
}

func newPolicyImportCommand() *cobra.Command {
	var files []string
	var recursive bool
	var failurePolicy string
	cmd := &cobra.Command{
		Use:   "import -f FILE",
		Short: "Turn Gatekeeper's ConstraintTemplates and constraints into WorkloadPolicies",
		Long: `Turn Gatekeeper's ConstraintTemplates and constraints into WorkloadPolicies, one
for each constraint, written to standard output as YAML.

What becomes of it a little differently is a warning on standard error. A
constraint of which something cannot be carried over is an error and makes no
policy; the exit code is then 1, and 2 if something could not be read.`,
		Example: `  penstock policy import -f template.yaml -f constraint.yaml > policy.yaml
  kubectl get constrainttemplates,constraints -o yaml | penstock policy import -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case len(files) == 0:
				return checkError(errors.New("nothing to import: name a file by -f, or - for standard input"))
			case failurePolicy != string(penstockv1.FailurePolicyFail) && failurePolicy != string(penstockv1.FailurePolicyIgnore):
				return checkError(fmt.Errorf("--failure-policy must be Fail or Ignore, not %q", failurePolicy))
			}
			objects, unreadable := check.Load(files, recursive, cmd.InOrStdin())
			documents := make([]policy.Document, len(objects))
			for i, object := range objects {
				documents[i] = policy.Document{Place: fmt.Sprintf("%s: document %d", object.File, object.Document), JSON: object.JSON}
			}
			imported := policy.Import(documents, penstockv1.PolicyFailurePolicy(failurePolicy))
			if err := imported.WriteYAML(cmd.OutOrStdout()); err != nil {
				return err
			}
			stderr := cmd.ErrOrStderr()
			for _, warning := range imported.Warnings {
				fmt.Fprintln(stderr, "Warning:", warning)
			}
			for _, err := range imported.Errors {
				fmt.Fprintln(stderr, "Error:", err)
			}
			for _, fault := range unreadable {
				fmt.Fprintln(stderr, "Error:", fault)
			}
			switch {
			case len(unreadable) > 0:
				return checkUsage
			case len(imported.Errors) > 0:
				return checkRefused
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return checkError(err) })
	flags := cmd.Flags()
	flags.StringArrayVarP(&files, "filename", "f", nil, "File or folder of templates, constraints and SyncSets, or - for standard input; may be repeated.")
	flags.BoolVarP(&recursive, "recursive", "R", false, "Read folders below the folders of -f as well.")
	flags.StringVar(&failurePolicy, "failure-policy", "Ignore", "What the policies' errors mean, Fail or Ignore; Gatekeeper itself ignores errors unless told otherwise.")
	return cmd
}

func newPolicyTestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test DIR...",
		Short: "Run Gatekeeper's test suites",
		Long: `Run the suites in folders and those below: files of kind Suite of
test.gatekeeper.sh/v1alpha1, whose templates and constraints are imported as
penstock policy import does, and judged by their Rego.

The exit code is 0 if all cases pass, 1 if one fails, and 2 if there is none or
something cannot be read.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			results, err := policy.RunSuites(cmd.Context(), args)
			if err != nil {
				return checkError(err)
			}
			failed, skipped := 0, 0
			for _, result := range results {
				switch {
				case result.Skipped:
					skipped++
				case result.Err != nil:
					failed++
					fmt.Fprintf(cmd.OutOrStdout(), "FAIL %s: %s: %s: %v\n", result.File, result.Test, result.Case, result.Err)
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d cases: %d passed, %d failed, %d skipped\n", len(results), len(results)-failed-skipped, failed, skipped)
			if failed > 0 {
				return checkRefused
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return checkError(err) })
	return cmd
}
