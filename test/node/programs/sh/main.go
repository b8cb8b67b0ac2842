// Command sh is a shell for images that have nothing else: the interpreter of
// mvdan.cc/sh, with the few commands that scripts of Penstock call.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	var status interp.ExitStatus
	switch {
	case err == nil:
	case ctx.Err() != nil:
		os.Exit(128 + int(syscall.SIGTERM))
	case errors.As(err, &status):
		os.Exit(int(status))
	default:
		fmt.Fprintln(os.Stderr, "sh:", err)
		os.Exit(2)
	}
}

// run runs "-c [--] script [name [argument...]]" or "file [argument...]".
func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("use sh -c SCRIPT, or sh FILE")
	}
	var source io.Reader
	name, params := args[0], args[1:]
	if name == "-c" && len(params) > 0 && params[0] == "--" {
		params = params[1:]
	}
	if name == "-c" && len(params) > 0 {
		source, params = strings.NewReader(params[0]), params[1:]
		if len(params) > 0 {
			params = params[1:]
		}
	} else {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		source = file
	}
	script, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(source, name)
	if err != nil {
		return err
	}
	shell, err := interp.New(
		interp.StdIO(os.Stdin, os.Stdout, os.Stderr),
		interp.Params(append([]string{"--"}, params...)...),
		interp.ExecHandlers(commands),
	)
	if err != nil {
		return err
	}
	return shell.Run(ctx, script)
}

// commands runs cp and sleep, which no image here has, and leaves the rest to
// what is in PATH.
func commands(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		switch {
		case args[0] == "cp" && len(args) == 3:
			return copyFile(args[1], args[2])
		case args[0] == "sleep" && len(args) == 2:
			length, err := time.ParseDuration(args[1] + "s")
			if err != nil {
				return err
			}
			select {
			case <-ctx.Done():
			case <-time.After(length):
			}
			return ctx.Err()
		}
		return next(ctx, args)
	}
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
