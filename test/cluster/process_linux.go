package cluster

import "syscall"

// processAttributes gives a component a process group of its own, out of reach of the terminal's interrupt, and has
// the kernel kill it when the process that started it dies without stopping it.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
