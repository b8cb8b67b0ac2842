package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// What a cluster keeps in its folder. Only data, certificates and caches go when a start fails: the logs tell why.
var (
	dataDirs = []string{"etcd", "certificates", "stages", "kubectl-cache"}
	ownDirs  = append([]string{"logs"}, dataDirs...)
)

// prepareDir makes the cluster's folders, rid of what an earlier cluster left, and its certificates.
func (c *Cluster) prepareDir() error {
	dir := c.options.Dir
	if dir == "" {
		temporary, err := os.MkdirTemp("", "penstock-cluster-")
		if err != nil {
			return fmt.Errorf("failed to make a folder for the cluster: %w", err)
		}
		dir, c.temporary = temporary, true
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	c.Dir = dir
	if err := c.lockDir(); err != nil {
		return err
	}
	for _, name := range ownDirs {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.RemoveAll(at), os.MkdirAll(at, 0o755)); err != nil {
			return fmt.Errorf("failed to prepare the cluster's folder: %w", err)
		}
	}
	c.ca, err = writeCertificates(filepath.Join(dir, "certificates"))
	return err
}

// lockDir takes the folder for this cluster: a second one would delete the data of the first. The lock goes with the
// process, however it ends.
func (c *Cluster) lockDir() error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("failed to make the cluster's folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(c.Dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("failed to open the lock of the cluster's folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return fmt.Errorf("a cluster is already running in %s: %w", c.Dir, err)
	}
	c.lock = lock
	return nil
}

// releaseDir gives the folder up, and deletes what dirs names, or the whole folder when it names nothing, if this
// cluster made the folder and need not keep it.
func (c *Cluster) releaseDir(dirs ...string) error {
	var failure error
	if c.temporary && !c.options.Keep {
		if len(dirs) == 0 {
			failure = os.RemoveAll(c.Dir)
		}
		for _, name := range dirs {
			failure = errors.Join(failure, os.RemoveAll(filepath.Join(c.Dir, name)))
		}
	}
	if c.lock != nil {
		_ = c.lock.Close()
	}
	if failure != nil {
		return fmt.Errorf("failed to remove the cluster's folder: %w", failure)
	}
	return nil
}
