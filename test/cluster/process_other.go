//go:build unix && !linux

package cluster

import "syscall"

// processAttributes gives a component a process group of its own, out of reach of the terminal's interrupt.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
