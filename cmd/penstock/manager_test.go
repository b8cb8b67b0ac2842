package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// The table of flags in docs is complete, but for those of controller-runtime.
func TestFlagsOfTheManagerAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	newManagerCommand().Flags().VisitAll(func(flag *pflag.Flag) {
		if strings.HasPrefix(flag.Name, "zap-") || flag.Name == "kubeconfig" {
			return
		}
		if !strings.Contains(string(text), "`--"+flag.Name+"`") {
			t.Errorf("docs/operations.md says nothing of --%s", flag.Name)
		}
	})
}
