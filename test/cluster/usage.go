package cluster

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of times in /proc, the same on all platforms of Linux
// that Go knows.
const clockTick = 10 * time.Millisecond

// CPUTime returns what a process has taken of processors so far, to a hundredth of a second. It needs Linux.
func CPUTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("failed to read the time of a process: %w", err)
	}
	// The name of the program, in parentheses, may hold anything. The fields
	// behind it start with the third; utime and stime are 14 and 15.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, errors.New("failed to read the time of a process: /proc has too few fields")
	}
	var ticks int64
	for _, field := range fields[11:13] {
		one, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("failed to read the time of a process: %w", err)
		}
		ticks += one
	}
	return time.Duration(ticks) * clockTick, nil
}
