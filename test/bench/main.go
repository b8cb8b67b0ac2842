// Command bench measures what Penstock costs on the write path, against a
// reference in the same run, and prints last one line a figure:
//
//	bar NAME VALUE LIMIT
//
// VALUE is the ratio of ours to the reference; lower is better. Both sides of a
// ratio are measured in turns, and each is the median of its turns. What is
// measured is the time of the processor, the collector's included: the clock
// would count what else the machine does, and leave out what is done beside.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// turns is how often both sides of a ratio are measured.
const turns = 7

// A bar is one figure that is to be held.
type bar struct {
	name         string
	value, limit float64
}

// A side is one of the two things that a ratio compares.
type side struct {
	name string
	run  func(b *testing.B)
}

func main() {
	testing.Init()
	live := flag.Bool("live", true, "Measure a running server too; needs the control plane's binaries.")
	conversions := flag.Bool("conversion", false, "Measure conversion only: calls of running servers and filling watch caches as well.")
	policy := flag.Bool("policy", false, "Measure the policy engine only.")
	reference := flag.String("serve-reference", "", "Serve what a running server is compared with at this address of the machine, and measure nothing.")
	flag.Parse()
	log.SetLogger(logr.Discard())
	err := func() error {
		if *reference != "" {
			return serveReference(*reference)
		}
		if *conversions {
			return report(allConversionBars())
		}
		if *policy {
			return report(policyBars())
		}
		return report(allBars(*live))
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// allBars measures conversion and admission.
func allBars(live bool) ([]bar, error) {
	conversions, err := conversionBars()
	if err != nil {
		return nil, err
	}
	admissions, err := admissionBars()
	if err != nil {
		return nil, err
	}
	bars := slices.Concat(conversions, admissions)
	if !live {
		return bars, nil
	}
	running, err := liveBars()
	return append(bars, running...), err
}

func report(bars []bar, err error) error {
	if err != nil {
		return err
	}
	for _, bar := range bars {
		fmt.Printf("bar %s %.3f %.3f\n", bar.name, bar.value, bar.limit)
	}
	return nil
}

// ratio measures ours and the reference in this process. It has one processor
// meanwhile: on idle ones the collector does more than it has to.
func ratio(name string, ours, reference side) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	value, _ := compare(name,
		measured{ours.name, func() (float64, error) { return nanoseconds(ours.run), nil }},
		measured{reference.name, func() (float64, error) { return nanoseconds(reference.run), nil }})
	return value
}

// measured is one side of a ratio and how its nanoseconds are taken.
type measured struct {
	name string
	take func() (float64, error)
}

// compare takes ours and the reference in turns.
func compare(name string, ours, reference measured) (float64, error) {
	sides := [2]measured{ours, reference}
	var taken [2][]float64
	for range turns {
		for i, side := range sides {
			nanoseconds, err := side.take()
			if err != nil {
				return 0, fmt.Errorf("failed to measure %s of %s: %w", name, side.name, err)
			}
			taken[i] = append(taken[i], nanoseconds)
		}
	}
	for i, side := range sides {
		fmt.Printf("%-28s %-36s %8.1f us (%.1f to %.1f)\n", name, side.name,
			median(taken[i])/1e3, slices.Min(taken[i])/1e3, slices.Max(taken[i])/1e3)
		name = ""
	}
	return median(taken[0]) / median(taken[1]), nil
}

// nanoseconds gives the CPU time of one operation, garbage collection included:
// what else the machine is doing then counts for less than by the clock.
func nanoseconds(run func(*testing.B)) float64 {
	var used time.Duration
	result := testing.Benchmark(func(b *testing.B) {
		before := processTime()
		run(b)
		used = processTime() - before
	})
	return float64(used.Nanoseconds()) / float64(result.N)
}

func processTime() time.Duration {
	var usage syscall.Rusage
	// It cannot fail for the process itself.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}
