package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-dev/penstock/cmd/penstock/policy"
)

// policyTestOptions are the flags of penstock policy test.
type policyTestOptions struct {
	run       string
	coverage  bool
	threshold float64
	verbose   bool
	output    string
	timeout   time.Duration

	systemNamespaces []string
}

func newPolicyTestCommand() *cobra.Command {
	o := &policyTestOptions{}
	cmd := &cobra.Command{
		Use:   "test PATH...",
		Short: "Test policies: by tests in Rego, by cases, and by Gatekeeper's suites",
		Long: `Test policies. In folders and those below, or in files that are named, it runs

  *_test.rego   tests written in Rego, rules whose names begin with test_, of the
                policies in the same folder: import the package of the policy.
                They see its spec.libs and the builtins that a policy may call.
  cases/*.yaml  cases for the policies in the folder above: an object, and the
                verdict and the violations that it must get.
  suites        of test.gatekeeper.sh, whose templates and constraints are
                imported as penstock policy import does.

The exit code is 0 if all tests pass, 1 if one fails or the coverage is below
the threshold, and 2 if something could not be read or run, or there is no test.`,
		Example: `  penstock policy test policies
  penstock policy test policies --run 'max-gpus.*scale' -v
  penstock policy test policies --coverage --threshold 90
  penstock policy test policies -o junit > policies.xml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return checkError(errors.New("nothing to test: name the folder of the policies"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("threshold") {
				o.coverage = true
			}
			return o.test(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return checkError(err) })
	flags := cmd.Flags()
	flags.StringVar(&o.run, "run", "", "Run only the tests whose FILE: NAME matches this regular expression.")
	flags.BoolVar(&o.coverage, "coverage", false, "Say which lines of the policies were evaluated.")
	flags.Float64Var(&o.threshold, "threshold", 0, "Fail if less than this percentage of all lines was evaluated; implies --coverage.")
	flags.DurationVar(&o.timeout, "timeout", policy.DefaultTimeout, "How long one test in Rego, or one policy for a case, may take.")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "Show the tests that pass as well.")
	flags.StringSliceVar(&o.systemNamespaces, systemNamespacesFlag, nil, systemNamespacesUsage)
	flags.StringVarP(&o.output, "output", "o", "text", "Format of what is written: text, json or junit.")
	return cmd
}

func (o *policyTestOptions) test(ctx context.Context, paths []string, stdout, stderr io.Writer) error {
	options := policy.TestOptions{Paths: paths, Coverage: o.coverage, Timeout: o.timeout, SystemNamespaces: o.systemNamespaces}
	switch {
	case !slices.Contains([]string{"text", "json", "junit"}, o.output):
		return checkError(fmt.Errorf("--output must be text, json or junit, not %q", o.output))
	case o.timeout <= 0:
		return checkError(fmt.Errorf("--timeout must be more than 0, not %v", o.timeout))
	case o.threshold < 0 || o.threshold > 100:
		return checkError(fmt.Errorf("--threshold must be a percentage from 0 to 100, not %v", o.threshold))
	}
	if o.run != "" {
		var err error
		if options.Run, err = regexp.Compile(o.run); err != nil {
			return checkError(fmt.Errorf("--run must be a regular expression: %w", err))
		}
	}
	report, err := policy.Test(ctx, options)
	if err != nil {
		return checkError(err)
	}
	if err := o.write(report, stdout); err != nil {
		return checkError(err)
	}
	for _, warning := range report.Warnings {
		fmt.Fprintln(stderr, "Warning:", warning)
	}
	return o.judge(report, stderr)
}

// judge says what was wrong, and gives the exit code of it.
func (o *policyTestOptions) judge(report *policy.TestReport, stderr io.Writer) error {
	for _, fault := range report.Errors {
		fmt.Fprintln(stderr, "Error:", fault)
	}
	below := report.Coverage != nil && report.Coverage.Percent < o.threshold
	if below {
		fmt.Fprintf(stderr, "Error: the coverage of %.1f%% is below the threshold of %v%%\n", report.Coverage.Percent, o.threshold)
	}
	switch {
	case len(report.Errors) > 0:
		return checkUsage
	case report.Summary.Failed > 0 || below:
		return checkRefused
	default:
		return nil
	}
}

func (o *policyTestOptions) write(report *policy.TestReport, w io.Writer) error {
	switch o.output {
	case "json":
		return report.WriteJSON(w)
	case "junit":
		return report.WriteJUnit(w)
	default:
		return report.WriteText(w, o.verbose)
	}
}
