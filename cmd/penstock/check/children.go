package check

import (
	"bufio"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// WriteChildren writes the children of all objects as manifests.
func (r Report) WriteChildren(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, result := range r.Results {
		for _, child := range result.Children {
			manifest, err := yaml.Marshal(child.Object)
			if err != nil {
				return fmt.Errorf("failed to write %s %s: %w", child.GetKind(), child.GetName(), err)
			}
			fmt.Fprintf(out, "---\n# of %s %s\n", result.Kind, result.fullName())
			if child.Generated {
				fmt.Fprintln(out, "# Its data is made at random when it is created, and is not here.")
			}
			fmt.Fprintf(out, "%s", manifest)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("failed to write the children: %w", err)
	}
	return nil
}
