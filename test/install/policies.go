package install

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/penstock-dev/penstock/policies/library"
)

// Policies applies the policies of the library with these names, or all of them. It goes on trying while the API
// server cannot reach the webhooks, until the context ends.
func Policies(ctx context.Context, config *rest.Config, names ...string) error {
	c, err := newClient(config)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		if names, err = library.Names(); err != nil {
			return err
		}
	}
	manifests, err := library.Manifests()
	if err != nil {
		return err
	}
	for _, name := range names {
		content, found := manifests[name+".yaml"]
		if !found {
			return fmt.Errorf("the library has no policy %q", name)
		}
		objects, err := decode(content)
		if err != nil {
			return fmt.Errorf("failed to decode policy %s: %w", name, err)
		}
		for _, object := range objects {
			// A webhook that cannot be called is an internal error; a refusal is not.
			err := retry(ctx, func() error { return apply(ctx, c, object.DeepCopy()) }, apierrors.IsInternalError)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
