package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	penstockv1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
	"github.com/penstock-dev/penstock/cmd/penstock/check"
	"github.com/penstock-dev/penstock/cmd/penstock/convert"
)

// convertLost ends penstock convert where a field has no home.
const convertLost exitCode = 1

// convertOptions are the flags of penstock convert.
type convertOptions struct {
	files     []string
	recursive bool
	to        string
	output    string
}

func newConvertCommand() *cobra.Command {
	o := &convertOptions{}
	cmd := &cobra.Command{
		Use:   "convert -f FILE",
		Short: "Turn manifests of v1alpha1 and of upstream kinds into v1, and back",
		Long: `Turn TrainingJobs and RayClusters of another version, and manifests of
kubeflow.org (PyTorchJob, TFJob, MPIJob, PaddleJob, XGBoostJob, JAXJob) and
ray.io (RayCluster), into those of the version asked for, by the same conversion
as in the cluster. They are written to standard output in the order in which they
were read, their fields in the order in which they were written; comments are
lost. Other kinds are written as they are.

A field that the version has no home for is left out and told on standard error,
with its value. What v1 can say and v1alpha1 cannot is kept in the annotation
penstock.dev/restore. Of an upstream object its status, finalizers and owners
stay behind.

The exit code is 0 if every field has a home, 1 if one has none, and 2 if the
command line is wrong or an input cannot be read.`,
		Example: `  penstock convert -f job.yaml > job-v1.yaml
  kubectl get pytorchjobs -A -o yaml | penstock convert -f -
  penstock convert -f manifests -R --to v1alpha1 -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return checkError(fmt.Errorf("unexpected argument %q: name files by -f", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return checkError(err) })
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "File or folder of manifests, or - for standard input; may be repeated.")
	flags.BoolVarP(&o.recursive, "recursive", "R", false, "Read folders below the folders of -f as well.")
	flags.StringVar(&o.to, "to", penstockv1.GroupVersion.Version, "Version to convert to: v1 or v1alpha1.")
	flags.StringVarP(&o.output, "output", "o", "yaml", "Format of what is written: yaml or json.")
	return cmd
}

func (o *convertOptions) run(stdin io.Reader, stdout, stderr io.Writer) error {
	write, err := o.validate()
	if err != nil {
		return checkError(err)
	}
	objects, unreadable := check.Load(o.files, o.recursive, stdin)
	var results []*convert.Result
	lost := false
	converter := convert.New(o.to)
	for _, object := range objects {
		for _, repeated := range object.Repeated {
			unreadable = append(unreadable, &check.Unreadable{File: object.File, Document: object.Document, Message: repeated})
		}
		result, err := converter.Convert(object)
		if err != nil {
			unreadable = append(unreadable, &check.Unreadable{File: object.File, Document: object.Document, Message: err.Error()})
			continue
		}
		results = append(results, result)
		lost = lost || len(result.Lost) > 0
		o.tell(stderr, result)
	}
	if len(results) > 0 {
		if err := write(stdout, results); err != nil {
			return checkError(err)
		}
	}
	for _, fault := range unreadable {
		fmt.Fprintln(stderr, "Error:", fault)
	}
	switch {
	case len(unreadable) > 0:
		return checkUsage
	case lost:
		return convertLost
	default:
		return nil
	}
}

// validate gives how results are written.
func (o *convertOptions) validate() (write func(io.Writer, []*convert.Result) error, err error) {
	switch {
	case len(o.files) == 0:
		return nil, errors.New("nothing to convert: name a file by -f, or - for standard input")
	case o.to != penstockv1.GroupVersion.Version && o.to != v1alpha1.GroupVersion.Version:
		return nil, fmt.Errorf("--to must be v1 or v1alpha1, not %q", o.to)
	case o.output == "yaml":
		return convert.WriteYAML, nil
	case o.output == "json":
		return convert.WriteJSON, nil
	default:
		return nil, fmt.Errorf("--output must be yaml or json, not %q", o.output)
	}
}

// tell says what of an object is not in what was made of it.
func (o *convertOptions) tell(stderr io.Writer, result *convert.Result) {
	for _, loss := range result.Lost {
		fmt.Fprintf(stderr, "%s: %s has no home in %s and is left out; it was %s\n", result, loss.Field, o.to, loss.Value)
	}
	for _, note := range result.Notes {
		fmt.Fprintf(stderr, "%s: note: %s\n", result, note)
	}
}
