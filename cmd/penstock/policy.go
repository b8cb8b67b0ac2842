package main

import (
	"context"
	"encoding/json"
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
		// A command that is misspelt must not pass for a call for help.
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPolicyImportCommand(), newPolicyTestCommand())
	return cmd
}

func newPolicyImportCommand() *cobra.Command {
	var files, systemNamespaces []string
	var recursive bool
	var failurePolicy string
	cmd := &cobra.Command{
		Use:   "import -f FILE",
		Short: "Turn Gatekeeper's ConstraintTemplates and constraints into WorkloadPolicies",
		Long: `Turn Gatekeeper's ConstraintTemplates and constraints into WorkloadPolicies, one
for each constraint, written to standard output as YAML.

What becomes of it a little differently is a warning on standard error, and so is
what a cluster would say of the policy, as far as that is known without one. A
constraint of which something cannot be carried over is an error and makes no
policy; the exit code is then 1, and 2 if something could not be read.`,
		Example: `  penstock policy import -f template.yaml -f constraint.yaml > policy.yaml
  kubectl get constrainttemplates,constraints -o yaml | penstock policy import -f -`,
		Args: noArguments,
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
			advice, err := adviceOn(cmd.Context(), imported.Policies, systemNamespaces)
			if err != nil {
				return err
			}
			imported.Warnings = append(imported.Warnings, advice...)
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
	flags.StringSliceVar(&systemNamespaces, systemNamespacesFlag, nil, systemNamespacesUsage)
	flags.StringVar(&failurePolicy, "failure-policy", "Ignore", "What the policies' errors mean, Fail or Ignore; Gatekeeper itself ignores errors unless told otherwise.")
	return cmd
}

// adviceOn gives what a cluster would say of policies, a line each.
func adviceOn(ctx context.Context, policies []*penstockv1.WorkloadPolicy, systemNamespaces []string) ([]string, error) {
	checker, err := check.New(check.Options{SystemNamespaces: systemNamespaces})
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, one := range policies {
		raw, err := json.Marshal(one)
		if err != nil {
			return nil, fmt.Errorf("failed to write policy %s: %w", one.Name, err)
		}
		result := checker.Check(ctx, check.Object{JSON: raw})
		for _, fault := range result.Faults {
			lines = append(lines, fmt.Sprintf("policy %s would be refused: %s", one.Name, fault))
		}
		for _, warning := range result.Warnings {
			lines = append(lines, fmt.Sprintf("policy %s: %s", one.Name, warning))
		}
	}
	return lines, nil
}
