package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"net"
)

// width is how many numbers each process has in each piece of its vector.
const width = 4096

// ring is a process's connections to the one after it and the one before.
type ring struct {
	rank, world int
	next, prev  net.Conn
}

// agree adds up the vectors of all processes, and makes sure that all have the
// same result and that it is right. Process r has r+1 everywhere.
func agree(ctx context.Context, p *place) (int64, error) {
	defer p.listener.Close()
	world := len(p.peers)
	vector := make([]int64, world*width)
	for i := range vector {
		vector[i] = int64(p.rank + 1)
	}
	if world > 1 {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		r, err := connectRing(ctx, p)
		if err != nil {
			return 0, err
		}
		defer r.next.Close()
		defer r.prev.Close()
		defer context.AfterFunc(ctx, func() { r.next.Close(); r.prev.Close() })()
		if err := r.allReduce(vector); err != nil {
			return 0, fmt.Errorf("the all-reduce failed: %w", err)
		}
		if err := r.compare(vector); err != nil {
			return 0, err
		}
	}
	want := int64(world) * int64(world+1) / 2
	for i, got := range vector {
		if got != want {
			return 0, fmt.Errorf("element %d is %d, and should be %d", i, got, want)
		}
	}
	return want, nil
}

// connectRing connects to the next process and takes the previous one's call.
func connectRing(ctx context.Context, p *place) (*ring, error) {
	r := &ring{rank: p.rank, world: len(p.peers)}
	accepted := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { p.listener.Close() })
	defer stop()
	go func() {
		for {
			conn, err := p.listener.Accept()
			if err != nil {
				accepted <- err
				return
			}
			var caller int64
			if err := binary.Read(conn, binary.BigEndian, &caller); err != nil || int(caller) != (r.rank+r.world-1)%r.world {
				conn.Close() // Not the previous one, or one that has gone again.
				continue
			}
			r.prev = conn
			accepted <- nil
			return
		}
	}()
	var err error
	if r.next, err = dial(ctx, p.peers[(p.rank+1)%r.world]); err != nil {
		return nil, fmt.Errorf("the next process is out of reach: %w", err)
	}
	if err := binary.Write(r.next, binary.BigEndian, int64(r.rank)); err != nil {
		return nil, err
	}
	if err := <-accepted; err != nil {
		return nil, fmt.Errorf("the previous process did not call: %w", err)
	}
	return r, nil
}

// allReduce leaves in every process the sum of all vectors, whose length is a
// multiple of the world's size: a reduce-scatter, in which a piece grows as it
// goes round, then an all-gather of the finished pieces.
func (r *ring) allReduce(vector []int64) error {
	piece := func(i int) []int64 {
		n := len(vector) / r.world
		i = ((i % r.world) + r.world) % r.world
		return vector[i*n : (i+1)*n]
	}
	received := make([]int64, len(vector)/r.world)
	for step := range r.world - 1 {
		if err := r.exchange(piece(r.rank-step), received); err != nil {
			return err
		}
		for i, value := range received {
			piece(r.rank - step - 1)[i] += value
		}
	}
	for step := range r.world - 1 {
		if err := r.exchange(piece(r.rank+1-step), received); err != nil {
			return err
		}
		copy(piece(r.rank-step), received)
	}
	return nil
}

// exchange sends to the next process while it receives from the previous one.
func (r *ring) exchange(out, in []int64) error {
	sent := make(chan error, 1)
	go func() { sent <- binary.Write(r.next, binary.BigEndian, out) }()
	if err := binary.Read(r.prev, binary.BigEndian, in); err != nil {
		return err
	}
	return <-sent
}

// compare passes a digest of every result round the whole ring, so that each
// process has seen everybody's.
func (r *ring) compare(vector []int64) error {
	hash := fnv.New64a()
	if err := binary.Write(io.Writer(hash), binary.BigEndian, vector); err != nil {
		return err
	}
	own := []int64{int64(r.rank), int64(hash.Sum64())}
	passing, received := []int64{own[0], own[1]}, make([]int64, 2)
	for step := 1; step < r.world; step++ {
		if err := r.exchange(passing, received); err != nil {
			return fmt.Errorf("the results were not compared: %w", err)
		}
		if want := int64((r.rank - step + r.world) % r.world); received[0] != want || received[1] != own[1] {
			return fmt.Errorf("process %d has another result, or is not %d", received[0], want)
		}
		copy(passing, received)
	}
	return nil
}
