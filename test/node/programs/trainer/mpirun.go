package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// mpiProcess is what mpirun tells a process that it starts.
type mpiProcess struct {
	at          string
	rank, world int
}

// slot is room for one process on a host.
type slot struct {
	host string
	rank int
}

// mpirun starts a command in every slot of the hostfile over ssh, tells the
// processes where to report, which is here, under this host's own name, and ends
// when all have ended: with the code of one that failed.
func mpirun(ctx context.Context, command []string) error {
	if len(command) == 0 {
		return errors.New("mpirun: there is nothing to run")
	}
	slots, err := readSlots()
	if err != nil {
		return err
	}
	run, err := transport()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		return err
	}
	go preside(ctx, listener, len(slots), len(slots))
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	at := net.JoinHostPort(name, port)

	failures := make([]error, len(slots))
	outputs := make([]string, len(slots))
	var group sync.WaitGroup
	for i, s := range slots {
		line := append(append([]string{}, command...),
			"-mpi-at="+at, "-mpi-rank="+strconv.Itoa(s.rank), "-mpi-world="+strconv.Itoa(len(slots)))
		group.Go(func() { outputs[i], failures[i] = run(ctx, s.host, strings.Join(line, " ")) })
	}
	group.Wait()
	for i, s := range slots {
		fmt.Printf("[%d,%s]: %s", s.rank, s.host, outputs[i])
	}
	if err := errors.Join(failures...); err != nil {
		var status *ssh.ExitError
		if errors.As(err, &status) {
			return exit(status.ExitStatus())
		}
		var ended *exec.ExitError
		if errors.As(err, &ended) && ended.ExitCode() > 0 {
			return exit(ended.ExitCode())
		}
		return err
	}
	var last []string
	for _, output := range outputs {
		lines := strings.Split(strings.TrimSpace(output), "\n")
		last = append(last, lines[len(lines)-1])
	}
	say(strings.Join(last, "\n"))
	return nil
}

// transport returns what runs a command line on a host and gives its output: the
// agent that is set, a program that is called as ssh would be, or ssh.
func transport() (func(ctx context.Context, host, line string) (string, error), error) {
	for _, variable := range []string{"OMPI_MCA_plm_rsh_agent", "I_MPI_HYDRA_BOOTSTRAP_EXEC", "HYDRA_LAUNCHER_EXEC"} {
		if agent := os.Getenv(variable); agent != "" {
			return func(ctx context.Context, host, line string) (string, error) {
				output, err := exec.CommandContext(ctx, agent, host, line).CombinedOutput()
				return string(output), err
			}, nil
		}
	}
	signer, err := readKey()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, host, line string) (string, error) { return remote(ctx, signer, host, line) }, nil
}

// readSlots reads the hostfile in the form of the implementation that is set up.
func readSlots() ([]slot, error) {
	path, separator := "", " slots="
	for _, form := range []struct{ variable, separator string }{
		{"OMPI_MCA_orte_default_hostfile", " slots="},
		{"I_MPI_HYDRA_HOST_FILE", ":"},
		{"HYDRA_HOST_FILE", ":"},
	} {
		if value := os.Getenv(form.variable); value != "" {
			path, separator = value, form.separator
		}
	}
	if path == "" {
		return nil, errors.New("mpirun: no variable names a hostfile")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var slots []slot
	for line := range strings.Lines(string(content)) {
		host, count, found := strings.Cut(strings.TrimSpace(line), separator)
		n, err := strconv.Atoi(count)
		if !found || err != nil || n < 1 {
			return nil, fmt.Errorf("mpirun: cannot read the line %q of %s", line, path)
		}
		for range n {
			slots = append(slots, slot{host: host, rank: len(slots)})
		}
	}
	if len(slots) == 0 {
		return nil, fmt.Errorf("mpirun: %s names no host", path)
	}
	return slots, nil
}

// readKey reads the private key, and refuses one that others can read, as ssh
// does.
func readKey() (ssh.Signer, error) {
	info, err := os.Stat(privateKey)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("ssh: permissions %o of %s are too open", info.Mode().Perm(), privateKey)
	}
	content, err := os.ReadFile(privateKey)
	if err != nil {
		return nil, err
	}
	return ssh.ParsePrivateKey(content)
}

// remote runs a command line on a host, and returns what it printed.
func remote(ctx context.Context, signer ssh.Signer, host, line string) (string, error) {
	client, err := enter(ctx, signer, host)
	if err != nil {
		return "", fmt.Errorf("ssh %s: %w", host, err)
	}
	defer client.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	session, err := client.NewSession()
	if err != nil {
		return "", fmt.Errorf("ssh %s: %w", host, err)
	}
	defer session.Close()
	output, err := session.CombinedOutput(line)
	return string(output), err
}

// enter connects as often as the options for ssh allow, a second apart.
func enter(ctx context.Context, signer ssh.Signer, host string) (*ssh.Client, error) {
	config := &ssh.ClientConfig{
		User:            "root",
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: ssh.InsecureIgnoreHostKey(), // StrictHostKeyChecking=no
		Timeout:         5 * time.Second,
	}
	for attempt := 1; ; attempt++ {
		client, err := ssh.Dial("tcp", net.JoinHostPort(host, sshPort), config)
		if err == nil || attempt >= attempts() {
			return client, err
		}
		fmt.Printf("ssh %s: attempt %d: %v\n", host, attempt, err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// attempts is the ConnectionAttempts of the options that the job sets.
func attempts() int {
	for _, variable := range []string{"OMPI_MCA_plm_rsh_args", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "HYDRA_LAUNCH_EXTRA_ARGS"} {
		_, value, found := strings.Cut(os.Getenv(variable), "ConnectionAttempts=")
		value, _, _ = strings.Cut(value, " ")
		if n, err := strconv.Atoi(value); found && err == nil {
			return n
		}
	}
	return 1
}
