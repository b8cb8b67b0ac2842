package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// meeting is how a process finds its peers: at a place where they all report, or
// by a list of them all.
type meeting struct {
	framework string

	// at is where the processes report, and hosts says that this one is in charge
	// there. least and most bound their number. rank is this one's, or -1 for one
	// that is given there.
	at          string
	hosts       bool
	least, most int
	rank        int

	// peers are the addresses of all, by rank, where they are known beforehand.
	peers []string
}

// fromEnvironment reads what the job's framework sets for its processes.
func fromEnvironment(mpi mpiProcess) (*meeting, error) {
	switch {
	case mpi.at != "":
		return &meeting{framework: "mpi", at: mpi.at, rank: mpi.rank, least: mpi.world, most: mpi.world}, nil
	case os.Getenv("TF_CONFIG") != "":
		return tensorflow(os.Getenv("TF_CONFIG"))
	case os.Getenv("COORDINATOR_ADDRESS") != "":
		return ranked("jax", "COORDINATOR_ADDRESS", "COORDINATOR_PORT", "PROCESS_ID", "NUM_PROCESSES")
	case os.Getenv("PET_RDZV_ENDPOINT") != "":
		return torchrun()
	case os.Getenv("PADDLE_MASTER") != "":
		world, err := number("PADDLE_NNODES")
		return unranked("paddle", os.Getenv("PADDLE_MASTER"), world, world, err)
	case os.Getenv("WORKER_ADDRS") != "":
		return ranked("xgboost", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
	case os.Getenv("MASTER_ADDR") != "":
		return ranked("pytorch", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
	default:
		return &meeting{framework: "alone", peers: []string{net.JoinHostPort("127.0.0.1", "0")}}, nil
	}
}

// ranked is the way of init_process_group, and of jax.distributed: the process
// of rank 0 listens, at a name and port that all know.
func ranked(framework, address, port, rank, world string) (*meeting, error) {
	m := &meeting{framework: framework, at: net.JoinHostPort(os.Getenv(address), os.Getenv(port))}
	var err error
	if m.rank, err = number(rank); err != nil {
		return nil, err
	}
	if m.least, err = number(world); err != nil {
		return nil, err
	}
	m.hosts, m.most = m.rank == 0, m.least
	return m, nil
}

// torchrun is the way of its c10d rendezvous: ranks are given where they meet,
// and the number of nodes may be a range.
func torchrun() (*meeting, error) {
	least, most, ranged := strings.Cut(os.Getenv("PET_NNODES"), ":")
	if !ranged {
		most = least
	}
	from, err := strconv.Atoi(least)
	if err != nil {
		return nil, fmt.Errorf("PET_NNODES: %w", err)
	}
	to, err := strconv.Atoi(most)
	if backend := os.Getenv("PET_RDZV_BACKEND"); err == nil && backend != "c10d" {
		err = fmt.Errorf("PET_RDZV_BACKEND is %q", backend)
	}
	return unranked("torchrun", os.Getenv("PET_RDZV_ENDPOINT"), from, to, err)
}

// unranked is a meeting whose host is the process that has the address.
func unranked(framework, at string, least, most int, err error) (*meeting, error) {
	if err != nil {
		return nil, err
	}
	return &meeting{framework: framework, at: at, hosts: isOwn(at), least: least, most: most, rank: -1}, nil
}

// isOwn says whether an address is this machine's. A name that is not known yet
// is, at worst, asked for once more when the peers report.
func isOwn(at string) bool {
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return false
	}
	if name, err := os.Hostname(); err == nil && name == host {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	found, _ := net.LookupHost(host)
	return slices.ContainsFunc(own, func(address net.Addr) bool {
		prefix, ok := address.(*net.IPNet)
		return ok && slices.Contains(found, prefix.IP.String())
	})
}

// tensorflow reads TF_CONFIG, which lists all processes. Its ranks are counted
// role by role.
func tensorflow(text string) (*meeting, error) {
	var config struct {
		Cluster map[string][]string `json:"cluster"`
		Task    struct {
			Type  string `json:"type"`
			Index int    `json:"index"`
		} `json:"task"`
	}
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return nil, fmt.Errorf("TF_CONFIG: %w", err)
	}
	m := &meeting{framework: "tensorflow", rank: -1}
	for _, role := range []string{"chief", "master", "worker", "ps"} {
		if role == config.Task.Type {
			m.rank = len(m.peers) + config.Task.Index
		}
		m.peers = append(m.peers, config.Cluster[role]...)
	}
	if m.rank < 0 {
		// An evaluator is not of the cluster.
		return &meeting{framework: "tensorflow", peers: []string{net.JoinHostPort("127.0.0.1", "0")}}, nil
	}
	return m, nil
}

func number(variable string) (int, error) {
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", variable, err)
	}
	return n, nil
}
