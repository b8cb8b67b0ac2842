// Command build makes the binaries of a real Kubernetes control plane, and of the simulated nodes behind it, from
// their Go modules. It is run from test/controlplane as `go run ./build`, uses the standard library only, and leaves
// everything in one git-ignored folder, test/controlplane/bin.
//
// A first build takes minutes and later ones seconds, because Go caches the packages; what is already built from the
// same module files is not built again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	only := flags.String("only", "", "comma-separated names of the binaries to build, or node for those of a real node; by default those of a control plane")
	printDir := flags.Bool("print-dir", false, "print the folder that holds the binaries, and build nothing")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}

	root, err := moduleRoot()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "bin")
	if *printDir {
		fmt.Println(dir)
		return nil
	}

	wanted, err := choose(*only)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("failed to create the folder for binaries: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(dir, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	return buildAll(ctx, root, dir, wanted)
}

// buildAll brings every wanted binary up to date in dir, in order.
func buildAll(ctx context.Context, root, dir string, wanted []binary) error {
	began := time.Now()
	assets := offered(dir)
	fresh := 0
	for i, b := range wanted {
		place := fmt.Sprintf("(%d of %d)", i+1, len(wanted))
		linked, err := link(assets, dir, b)
		if err != nil {
			return err
		}
		if linked {
			say("%s %s taken from KUBEBUILDER_ASSETS", b.name, place)
			continue
		}
		if from, buildable := installed(b); !buildable {
			if linked, err = link(from, dir, b); err != nil {
				return err
			}
			if linked {
				say("%s %s taken from %s, for there is no C compiler", b.name, place, from)
			} else {
				say("%s %s left out: it needs a C compiler (gcc), or %s in PATH", b.name, place, b.name)
			}
			continue
		}
		job, err := prepare(root, dir, b)
		if err != nil {
			return err
		}
		if job.upToDate() {
			fresh++
			continue
		}
		say("building %s %s, about %s the first time on 2 cores, seconds when the Go cache is warm", b.name, place, b.firstTime)
		if err := job.build(ctx); err != nil {
			return err
		}
	}
	if fresh > 0 {
		say("%d of %d already up to date", fresh, len(wanted))
	}
	say("done in %s: %s", time.Since(began).Round(time.Second), dir)
	return nil
}

// moduleRoot returns the folder of this module, so that the command works from any folder inside it.
func moduleRoot() (string, error) {
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
			return "", fmt.Errorf("%s is not inside the module %s; run it from test/controlplane", dir, modulePath)
		}
	}
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s controlplane: %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}
