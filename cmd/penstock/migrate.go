package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/penstock-dev/penstock/cmd/penstock/migrate"
)

// Exit codes of penstock migrate.
const (
	migrateInUse  exitCode = 1
	migrateFailed exitCode = 2
)

// migrateOptions are the flags of penstock migrate.
type migrateOptions struct {
	kubeconfig string
	context    string
	timeout    time.Duration
}

func newMigrateCommand() *cobra.Command {
	o := &migrateOptions{}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Have stored objects rewritten in v1, and say whether v1alpha1 is still used",
		Long: `Have all stored objects of Penstock's kinds rewritten in v1, by the API server's
own StorageVersionMigration (storagemigration.k8s.io, served since Kubernetes
1.37), and take the other versions out of status.storedVersions of their
CustomResourceDefinitions. Objects are rewritten as they are; nothing is down
meanwhile. The cluster does the work: a run that is interrupted can be followed by
another, which goes on where the cluster is.

Afterwards it says who still writes objects in another version, as managedFields
tell. Before a version is no longer served, its writers have to be moved:
penstock convert does so for manifests.

The exit code is 0 if no version but v1 is used, 1 if everything is stored in v1
but some objects are still written in another version, and 2 if the migration
failed or could not be made.`,
		Example: `  penstock migrate
  penstock migrate --context production --timeout 2h`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return checkError(fmt.Errorf("unexpected argument %q", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return checkError(err) })
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "File that says how to reach the cluster; KUBECONFIG or ~/.kube/config by default.")
	flags.StringVar(&o.context, "context", "", "Context of that file; its current one by default.")
	flags.DurationVar(&o.timeout, "timeout", time.Hour, "How long to wait for the cluster to finish.")
	return cmd
}

// A migrateError ends the process with the code for a migration that failed.
type migrateError struct{ error }

func (migrateError) Unwrap() error { return migrateFailed }

func (o *migrateOptions) run(ctx context.Context, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	// What is to be said is said on standard output.
	log.SetLogger(logr.Discard())
	cluster, err := o.connect()
	if err != nil {
		return migrateError{err}
	}
	migrator := &migrate.Migrator{Client: cluster, Poll: time.Second, Say: func(format string, arguments ...any) {
		fmt.Fprintf(stdout, format+"\n", arguments...)
	}}
	definitions, err := migrator.Definitions(ctx)
	if err != nil {
		return migrateError{err}
	}
	inUse := false
	for i := range definitions {
		definition := &definitions[i]
		if err := migrator.Migrate(ctx, definition.Name); err != nil {
			return migrateError{err}
		}
		managers, objects, err := migrator.Managers(ctx, definition)
		if err != nil {
			return migrateError{err}
		}
		inUse = inUse || objects > 0
		sayManagers(stdout, definition.Name, managers, objects)
	}
	if inUse {
		return migrateInUse
	}
	return nil
}

// sayManagers says who writes the objects of a kind in another version than v1.
func sayManagers(out io.Writer, name string, managers map[migrate.Manager]int, objects int) {
	if objects == 0 {
		fmt.Fprintf(out, "%s: no object was written in another version\n", name)
		return
	}
	fmt.Fprintf(out, "%s: %d objects are still written in another version:\n", name, objects)
	sorted := slices.SortedFunc(maps.Keys(managers), func(a, b migrate.Manager) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	for _, manager := range sorted {
		fmt.Fprintf(out, "  %s writes %d in %s\n", manager.Name, managers[manager], manager.Version)
	}
}

func (o *migrateOptions) connect() (client.Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("failed to find the cluster: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, storagemigrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	cluster, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("failed to reach the cluster: %w", err)
	}
	return cluster, nil
}
