package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/cmd/penstock/check"
	"github.com/penstock-dev/penstock/policies/library"
)

// Exit codes of penstock check.
const (
	checkRefused exitCode = 1
	checkUsage   exitCode = 2
)

// What the flag of that name of penstock manager says, for commands that say
// offline what that manager would say.
const (
	systemNamespacesFlag  = "system-namespaces"
	systemNamespacesUsage = "System namespaces that the cluster's manager was given by its flag of this name; none by default, as there."
)

// noPolicies is what --policies says to judge by invariants alone.
const noPolicies = "none"

// checkOptions are the flags of penstock check.
type checkOptions struct {
	files          []string
	recursive      bool
	policies       []string
	namespaceFiles []string
	inventory      []string
	namespace      string
	user           string
	groups         []string
	now            string
	old            []string
	output         string
	explain        bool
	render         bool

	systemNamespaces []string
}

func newCheckCommand() *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:   "check -f FILE",
		Short: "Say offline what the cluster would say to manifests",
		Long: `Say offline what a cluster with Penstock would say to manifests: TrainingJobs and
RayClusters in any version, WorkloadPolicies, and unchanged manifests of
kubeflow.org (PyTorchJob, TFJob, MPIJob, PaddleJob, XGBoostJob, JAXJob) and
ray.io (RayCluster). Other kinds are judged by the policies that name them, or
reported as not judged.

The verdict comes from the same conversion, defaults, schemas, invariants and
policies as the cluster's, in the same words. A policy that needs what was not
given (--user, --namespace-file, --inventory) is reported as not evaluated.

The exit code is 0 if all objects are admitted, with warnings or without, 1 if
one is refused, and 2 if the command line is wrong or an input cannot be read.`,
		Example: `  penstock check -f job.yaml
  kustomize build . | penstock check -f - -o json
  penstock check -f job.yaml --policies config/policies --namespace-file team.yaml --user ada
  penstock check -f job.yaml --old stored.yaml
  kubectl get nodes -o yaml > nodes.yaml && penstock check -f job.yaml --inventory nodes.yaml
  penstock check -f job.yaml --render | kubectl diff -f -
  penstock check -f manifests -R -o sarif > penstock.sarif`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return checkError(err) })
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "File or folder of manifests, or - for standard input; may be repeated.")
	flags.BoolVarP(&o.recursive, "recursive", "R", false, "Read folders below the folders of -f as well.")
	flags.StringArrayVar(&o.policies, "policies", nil, "File or folder of WorkloadPolicies to judge by instead of the library that comes with Penstock, or none; may be repeated.")
	flags.StringArrayVar(&o.namespaceFiles, "namespace-file", nil, "File or folder of Namespaces, for their labels; may be repeated.")
	flags.StringArrayVar(&o.inventory, "inventory", nil, "File or folder of objects that the cluster has, for policies that read them as data.inventory; may be repeated.")
	flags.StringVarP(&o.namespace, "namespace", "n", "default", "Namespace of objects that name none.")
	flags.StringVar(&o.user, "user", "", "Name of the user who applies.")
	flags.StringArrayVar(&o.groups, "group", nil, "Group of the user, besides system:authenticated and those of service accounts; may be repeated.")
	flags.StringVar(&o.now, "now", "", "Time to judge at, in RFC 3339; the present by default.")
	flags.StringArrayVar(&o.old, "old", nil, "File or folder of objects as they are stored: an object of the same kind, namespace and name is judged as an update; may be repeated.")
	flags.StringSliceVar(&o.systemNamespaces, systemNamespacesFlag, nil, systemNamespacesUsage)
	flags.StringVarP(&o.output, "output", "o", "text", "Format of what is written: text, json, sarif or junit.")
	flags.BoolVar(&o.render, "render", false, "Print what Penstock would make of each object that is admitted, as manifests, and what is said of the objects to standard error; with -o json both together.")
	flags.BoolVar(&o.explain, "explain", false, "Show for what policies find the line of the rule that found it, and the values it looked at.")
	return cmd
}

// noArguments refuses what most likely is a file without -f.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return checkError(fmt.Errorf("unexpected argument %q: name files by -f", args[0]))
	}
	return nil
}

// A usageError ends the process with the code for bad usage.
type usageError struct{ error }

func (usageError) Unwrap() error { return checkUsage }

func checkError(err error) error { return usageError{err} }

func (o *checkOptions) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	options, warnings, err := o.options(ctx)
	if err != nil {
		return checkError(err)
	}
	for _, warning := range warnings {
		fmt.Fprintln(stderr, "Warning:", warning)
	}
	checker, err := check.New(options)
	if err != nil {
		return checkError(err)
	}
	if err := o.store(ctx, checker); err != nil {
		return checkError(err)
	}
	objects, unreadable := check.Load(o.files, o.recursive, stdin)
	results := make([]check.Result, len(objects))
	for i, object := range objects {
		results[i] = checker.Check(ctx, object)
	}
	unreadable = append(unreadable, checker.Unmatched()...)
	report := check.NewReport(results, unreadable)
	if o.render && o.output == "text" {
		if err := report.WriteChildren(stdout); err != nil {
			return checkError(err)
		}
		stdout = stderr
	}
	if err := o.write(stdout, report, options.Policies); err != nil {
		return checkError(err)
	}
	for _, fault := range unreadable {
		fmt.Fprintln(stderr, "Error:", fault)
	}
	switch {
	case len(unreadable) > 0:
		return checkUsage
	case report.Summary.Refused > 0:
		return checkRefused
	default:
		return nil
	}
}

// checkOutputs are the values of --output.
var checkOutputs = []string{"text", "json", "sarif", "junit"}

func (o *checkOptions) write(w io.Writer, report check.Report, policies []*v1.WorkloadPolicy) error {
	switch o.output {
	case "json":
		return report.WriteJSON(w)
	case "sarif":
		return report.WriteSARIF(w, check.Tool{Version: version, Policies: policies})
	case "junit":
		return report.WriteJUnit(w)
	default:
		return report.WriteText(w)
	}
}

// validate says what is wrong with the flags by themselves.
func (o *checkOptions) validate() error {
	switch {
	case len(o.files) == 0:
		return errors.New("nothing to check: name a file by -f, or - for standard input")
	case !slices.Contains(checkOutputs, o.output):
		return fmt.Errorf("--output must be text, json, sarif or junit, not %q", o.output)
	case o.render && o.output != "text" && o.output != "json":
		return fmt.Errorf("--render has no place in %s: use -o text or json", o.output)
	case len(o.groups) > 0 && o.user == "":
		return errors.New("--group says nothing without --user")
	}
	return nil
}

// options reads what the flags say of the cluster, and gives the warnings that
// there are about the policies.
func (o *checkOptions) options(ctx context.Context) (options check.Options, warnings []string, err error) {
	options = check.Options{Namespace: o.namespace, SystemNamespaces: o.systemNamespaces, Now: time.Now(), Explain: o.explain}
	if err = o.validate(); err != nil {
		return options, nil, err
	}
	if o.now != "" {
		if options.Now, err = time.Parse(time.RFC3339, o.now); err != nil {
			return options, nil, fmt.Errorf("--now must be a time in RFC 3339 such as 2026-01-31T12:00:00Z, not %q", o.now)
		}
	}
	if o.render {
		if options.Render, err = renderer(options.Now); err != nil {
			return options, nil, err
		}
	}
	if o.user != "" {
		options.User = authenticationv1.UserInfo{Username: o.user, Groups: append(slices.Clone(o.groups), groupsOf(o.user)...)}
	}
	if options.Policies, options.Sources, warnings, err = o.loadPolicies(ctx); err != nil {
		return options, nil, fmt.Errorf("failed to load the policies: %w", err)
	}
	namespaces, err := load(o.namespaceFiles)
	if err == nil {
		options.Namespaces, err = check.Namespaces(namespaces)
	}
	if err != nil {
		return options, nil, fmt.Errorf("failed to load the namespaces: %w", err)
	}
	if len(o.inventory) > 0 {
		var unreadable []*check.Unreadable
		if options.Inventory, unreadable = check.LoadInventory(o.inventory, false); len(unreadable) > 0 {
			return options, nil, fmt.Errorf("failed to load the inventory: %w", unreadable[0])
		}
	}
	return options, warnings, nil
}

// groupsOf are the groups that the API server itself puts a user in.
func groupsOf(user string) []string {
	groups := []string{"system:authenticated"}
	if account, is := strings.CutPrefix(user, "system:serviceaccount:"); is {
		namespace, _, _ := strings.Cut(account, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	return groups
}

// loadPolicies gives the policies in force, where they are written, and what
// there is to warn of.
func (o *checkOptions) loadPolicies(ctx context.Context) (loaded []*v1.WorkloadPolicy, sources map[string]check.Source, warnings []string, err error) {
	switch {
	case len(o.policies) == 0:
		loaded, sources, err = libraryPolicies()
		return loaded, sources, nil, err
	case slices.Equal(o.policies, []string{noPolicies}):
		return nil, nil, nil, nil
	case slices.Contains(o.policies, noPolicies):
		return nil, nil, nil, errors.New("none stands alone; to read a file of that name write ./none")
	}
	objects, err := load(o.policies)
	if err != nil {
		return nil, nil, nil, err
	}
	loaded, warnings, err = check.Policies(ctx, objects, o.systemNamespaces)
	return loaded, check.Sources(objects), warnings, err
}

// libraryPolicies gives the library's, under their paths in the source tree.
func libraryPolicies() ([]*v1.WorkloadPolicy, map[string]check.Source, error) {
	loaded, err := library.Policies()
	sources := map[string]check.Source{}
	for _, policy := range loaded {
		sources[policy.Name] = check.Source{File: "policies/library/" + library.Folder(policy.Name) + "/policy.rego", Shipped: true}
	}
	return loaded, sources, err
}

func (o *checkOptions) store(ctx context.Context, checker *check.Checker) error {
	objects, err := load(o.old)
	if err != nil {
		return fmt.Errorf("failed to load the stored objects: %w", err)
	}
	for _, object := range objects {
		if err := checker.Store(ctx, object); err != nil {
			return fmt.Errorf("failed to load the stored objects: %s: %w", object.File, err)
		}
	}
	return nil
}

// load reads objects, all of them or none.
func load(paths []string) ([]check.Object, error) {
	objects, unreadable := check.Load(paths, false, nil)
	if len(unreadable) > 0 {
		return nil, unreadable[0]
	}
	return objects, nil
}
