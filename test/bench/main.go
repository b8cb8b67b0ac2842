// Command bench measures what Penstock costs on the write path, against a
// reference in the same run, and prints last one line a figure:
//
//	bar NAME VALUE LIMIT
//
// VALUE is the ratio of ours to the reference; lower is better. Both sides of a
// ratio are timed in turns, and each is the median of its turns.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// turns is how often both sides of a ratio are timed.
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
	flag.Parse()
	if err := run(*live); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(live bool) error {
	conversions, err := conversionBars()
	if err != nil {
		return err
	}
	admissions, err := admissionBars()
	if err != nil {
		return err
	}
	bars := slices.Concat(conversions, admissions)
	if live {
		running, err := liveBars()
		if err != nil {
			return err
		}
		bars = append(bars, running...)
	}
	for _, bar := range bars {
		fmt.Printf("bar %s %.3f %.3f\n", bar.name, bar.value, bar.limit)
	}
	return nil
}

// ratio times ours and the reference in turns.
func ratio(name string, ours, reference side) float64 {
	var oursTaken, referenceTaken []float64
	for range turns {
		oursTaken = append(oursTaken, nanoseconds(ours.run))
		referenceTaken = append(referenceTaken, nanoseconds(reference.run))
	}
	a, b := median(oursTaken), median(referenceTaken)
	fmt.Printf("%-28s %-34s %8.1f us (%.1f to %.1f)\n", name, ours.name, a/1e3, slices.Min(oursTaken)/1e3, slices.Max(oursTaken)/1e3)
	fmt.Printf("%-28s %-34s %8.1f us (%.1f to %.1f)\n", "", reference.name, b/1e3, slices.Min(referenceTaken)/1e3, slices.Max(referenceTaken)/1e3)
	return a / b
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
