package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"time"
)

const (
	// patience is how long a process waits for its peers: pods come one by one.
	patience = 2 * time.Minute
	// settling is how long a meeting of variable size waits for one more.
	settling = 2 * time.Second
)

// place is a process's place among its peers.
type place struct {
	rank     int
	peers    []string // addresses by rank
	listener net.Listener
}

// report is what a process says when it comes, and reply the answer once all
// are there.
type report struct {
	Rank    int    `json:"rank"`
	Address string `json:"address"`
}

type reply struct {
	Rank  int      `json:"rank"`
	Peers []string `json:"peers"`
	Error string   `json:"error,omitempty"`
}

// join finds this process's place.
func (m *meeting) join(ctx context.Context) (*place, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if m.peers != nil {
		_, port, err := net.SplitHostPort(m.peers[m.rank])
		if err != nil {
			return nil, err
		}
		listener, err := net.Listen("tcp", ":"+port)
		return &place{rank: m.rank, peers: m.peers, listener: listener}, err
	}
	if m.hosts {
		_, port, err := net.SplitHostPort(m.at)
		if err != nil {
			return nil, err
		}
		listener, err := net.Listen("tcp", ":"+port)
		if err != nil {
			return nil, err
		}
		go preside(ctx, listener, m.least, m.most)
	}
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		return nil, err
	}
	// One that is not the first may find the host of the former meeting, which is
	// about to go.
	for {
		answer, err := m.attend(ctx, listener)
		if err == nil {
			return &place{rank: answer.Rank, peers: answer.Peers, listener: listener}, nil
		}
		fmt.Println("not met yet:", err)
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the peers did not meet at %s: %w", m.at, err)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// attend reports at the meeting, and waits for the answer.
func (m *meeting) attend(ctx context.Context, listener net.Listener) (*reply, error) {
	conn, err := dial(ctx, m.at)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	// The address by which the host is reached is one by which others reach this
	// process.
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(conn).Encode(report{Rank: m.rank, Address: net.JoinHostPort(host, port)}); err != nil {
		return nil, err
	}
	var answer reply
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("refused: %s", answer.Error)
	}
	return &answer, nil
}

// dial connects, again and again until the name is known and somebody listens.
func dial(ctx context.Context, address string) (net.Conn, error) {
	for {
		conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// guest is a process that has reported.
type guest struct {
	report
	conn net.Conn
}

// preside waits for the processes, and tells each its rank and its peers.
func preside(ctx context.Context, listener net.Listener, least, most int) {
	defer listener.Close()
	arrivals := make(chan guest)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				one := guest{conn: conn}
				if err := json.NewDecoder(conn).Decode(&one.report); err != nil {
					conn.Close()
					return
				}
				arrivals <- one
			}()
		}
	}()
	var guests []guest
	for len(guests) < most {
		var settled <-chan time.Time
		if len(guests) >= least {
			settled = time.After(settling)
		}
		select {
		case <-ctx.Done():
			return
		case <-settled:
			most = len(guests)
		case one := <-arrivals:
			// Who reports again has started anew.
			guests = slices.DeleteFunc(guests, func(other guest) bool { return one.Rank >= 0 && other.Rank == one.Rank })
			guests = append(guests, one)
		}
	}
	seat(guests)
}

// seat gives every guest a rank, its own where it has one.
func seat(guests []guest) {
	peers := make([]string, len(guests))
	problem := ""
	for i := range guests {
		if guests[i].Rank < 0 {
			guests[i].Rank = i
		}
		switch rank := guests[i].Rank; {
		case rank >= len(peers):
			problem = fmt.Sprintf("rank %d is beyond a world of %d", rank, len(peers))
		case peers[rank] != "":
			problem = fmt.Sprintf("rank %d is there twice", rank)
		default:
			peers[rank] = guests[i].Address
		}
	}
	for _, one := range guests {
		_ = json.NewEncoder(one.conn).Encode(reply{Rank: one.Rank, Peers: peers, Error: problem})
		one.conn.Close()
	}
}
