package cluster

import (
	"errors"
	"os"
	"testing"
)

// ForTest starts a cluster that is stopped when the test, or benchmark, ends, and fails the test when it cannot.
// Without the binaries it skips the test, unless CI is "true". To share a cluster among the tests of a package, call
// Start from TestMain, and SkipWithoutAssets from the tests.
func ForTest(tb testing.TB, options Options) *Cluster {
	tb.Helper()
	SkipWithoutAssets(tb)
	c, err := Start(tb.Context(), options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// SkipWithoutAssets skips a test when the binaries of the control plane are missing, unless CI is "true": there it
// fails, for a skipped test is one that nobody notices.
func SkipWithoutAssets(tb testing.TB) {
	tb.Helper()
	_, err := FindAssets()
	switch {
	case err == nil:
	case errors.Is(err, ErrNoAssets) && os.Getenv("CI") != "true":
		tb.Skip(err)
	default:
		tb.Fatal(err)
	}
}
