package install

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/penstock-dev/penstock/test/cluster"
)

// Build builds Penstock into a folder, with further flags of go build, and
// returns the path of the binary.
func Build(ctx context.Context, dir string, flags ...string) (string, error) {
	root, err := cluster.ModuleRoot()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "penstock")
	command := exec.CommandContext(ctx, "go", append(append([]string{"build"}, flags...), "-o", binary, "./cmd/penstock")...)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("failed to build Penstock: %w\n%s", err, output)
	}
	return binary, nil
}
