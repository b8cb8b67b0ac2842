// Command trainer is a training process without a model. It learns from its
// environment who it is and where its peers are, as the frameworks do, meets
// them, adds up what everybody has by a ring all-reduce, makes sure that all
// have come to the same sum, says so in its termination message, and exits with
// the code it was told.
//
// Called sshd, mpirun or ray it does the work of these; see the files of these
// names.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// terminationLog is where the kubelet looks for a container's last words.
const terminationLog = "/dev/termination-log"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	var err error
	switch filepath.Base(os.Args[0]) {
	case "pause":
		<-ctx.Done()
	case "sshd":
		err = sshd(ctx)
	case "ray":
		err = ray(ctx, os.Args[1:])
	case "mpirun":
		err = mpirun(ctx, os.Args[1:])
	default:
		err = train(ctx, os.Args[1:])
	}
	os.Exit(code(ctx, err))
}

// exit is an exit code that was asked for.
type exit int

func (e exit) Error() string { return "told to exit with " + strconv.Itoa(int(e)) }

// code is the exit code for an error. A process that is told to stop says so.
func code(ctx context.Context, err error) int {
	var told exit
	switch {
	case errors.As(err, &told):
		return int(told)
	case err == nil && ctx.Err() == nil:
		return 0
	case ctx.Err() != nil:
		return 128 + int(syscall.SIGTERM)
	}
	say("failed: " + err.Error())
	return 1
}

// say prints a line, and leaves it as the termination message.
func say(line string) {
	fmt.Println(line)
	if file, err := os.OpenFile(terminationLog, os.O_WRONLY|os.O_TRUNC, 0); err == nil {
		fmt.Fprintln(file, line)
		file.Close()
	}
}

// orders are what a process is told beside its environment.
type orders struct {
	exit     int
	ranks    string
	failures int
	run      time.Duration
	eat      bool
	mpi      mpiProcess
}

func parse(args []string) (orders, error) {
	var o orders
	flags := flag.NewFlagSet("trainer", flag.ContinueOnError)
	flags.IntVar(&o.exit, "exit", 0, "the code to exit with once all agree")
	flags.StringVar(&o.ranks, "ranks", "", "the ranks that do so, separated by commas; all by default")
	flags.IntVar(&o.failures, "failures", -1, "how often to exit with the code before 0, counted in /state; always by default")
	flags.DurationVar(&o.run, "run", 0, "how long to go on once all agree")
	flags.BoolVar(&o.eat, "eat", false, "use more and more memory once all agree")
	flags.StringVar(&o.mpi.at, "mpi-at", "", "where mpirun is; set by it")
	flags.IntVar(&o.mpi.rank, "mpi-rank", 0, "the rank in MPI's world; set by mpirun")
	flags.IntVar(&o.mpi.world, "mpi-world", 0, "the size of MPI's world; set by mpirun")
	return o, flags.Parse(args)
}

func train(ctx context.Context, args []string) error {
	told, err := parse(args)
	if err != nil {
		return err
	}
	meeting, err := fromEnvironment(told.mpi)
	if err != nil {
		return err
	}
	place, err := meeting.join(ctx)
	if err != nil {
		return err
	}
	sum, err := agree(ctx, place)
	if err != nil {
		return err
	}
	say(fmt.Sprintf("%s rank=%d world=%d sum=%d", meeting.framework, place.rank, len(place.peers), sum))
	return obey(ctx, told, place.rank)
}

func obey(ctx context.Context, told orders, rank int) error {
	if told.eat {
		eat(ctx)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(told.run):
	}
	if told.exit == 0 || !concerns(told.ranks, rank) {
		return nil
	}
	if told.failures >= 0 {
		before, err := countStart()
		if err != nil || before >= told.failures {
			return err
		}
	}
	return exit(told.exit)
}

func concerns(ranks string, rank int) bool {
	if ranks == "" {
		return true
	}
	for one := range strings.SplitSeq(ranks, ",") {
		if one == strconv.Itoa(rank) {
			return true
		}
	}
	return false
}

// countStart returns how often it was called before in this pod: files of an
// emptyDir volume survive a container.
func countStart() (int, error) {
	const path = "/state/starts"
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	return len(content), os.WriteFile(path, append(content, '.'), 0o644)
}

// eat takes memory until the kernel ends it.
func eat(ctx context.Context) {
	var all [][]byte
	for ctx.Err() == nil {
		piece := make([]byte, 4<<20)
		for i := 0; i < len(piece); i += 4096 {
			piece[i] = 1
		}
		all = append(all, piece)
		time.Sleep(time.Millisecond)
	}
	fmt.Println(len(all))
}
