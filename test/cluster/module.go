package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const modulePath = "github.com/penstock-dev/penstock"

// ModuleRoot walks up from the working directory to the folder of this module's go.mod, past modules nested in it.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+modulePath+"\n") {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not inside the module %s", dir, modulePath)
		}
	}
}
