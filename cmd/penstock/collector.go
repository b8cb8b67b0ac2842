package main

import (
	"os"
	"runtime/debug"
)

// heapGrowth is by how many percent the heap may grow before it is collected.
// What the manager keeps is small, some tens of megabytes, and nearly all that
// it allocates is for one request: by Go's own 100 percent a fifth of the time
// of a request goes to looking again at what is kept. GOMEMLIMIT, which the
// deployment sets, has the last word.
const heapGrowth = 400

// relaxCollector lets the heap grow by heapGrowth, unless GOGC says otherwise.
func relaxCollector() {
	if _, given := os.LookupEnv("GOGC"); !given {
		debug.SetGCPercent(heapGrowth)
	}
}
