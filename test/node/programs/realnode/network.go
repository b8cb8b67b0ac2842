package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
)

const (
	// nodeAddress is the node's, CoreDNS's, and the gateway of every pod.
	nodeAddress = "10.244.0.1"
	podRange    = "10.244.0.0/16"

	// uplinkSocket leads to the API server, downlinkSocket to the node.
	uplinkSocket   = "apiserver.sock"
	downlinkSocket = "node.sock"
)

// bringUpNetwork gives the node an address. Pods get theirs, and a cable each
// to the node, from CNI plugins.
func bringUpNetwork(n *node) error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("failed to find the loopback device: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("failed to bring up the loopback device: %w", err)
	}
	addresses := []string{nodeAddress}
	if n.Service != "" {
		// What kube-proxy would do for the one Service with an address.
		host, _, err := net.SplitHostPort(n.Service)
		if err != nil {
			return err
		}
		addresses = append(addresses, host)
	}
	for _, text := range addresses {
		address, err := netlink.ParseAddr(text + "/32")
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(loopback, address); err != nil {
			return fmt.Errorf("failed to give the node an address: %w", err)
		}
	}
	return nil
}

// tryCable makes one of the devices that pods need.
func tryCable() error {
	cable := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "try0"}, PeerName: "try1"}
	if err := netlink.LinkAdd(cable); err != nil {
		return fmt.Errorf("failed to make a veth device: %w", err)
	}
	return netlink.LinkDel(cable)
}

// join opens the node's ends of the tunnels.
func join(n *node) error {
	// The first is the same address as on the host, for which the certificate is.
	for _, address := range []string{n.APIServer, n.Service} {
		if address == "" {
			continue
		}
		apiserver, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("failed to listen for the API server: %w", err)
		}
		go forward(apiserver, "unix", filepath.Join(n.Dir, uplinkSocket))
	}
	downlink, err := listen(filepath.Join(n.Dir, downlinkSocket))
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(downlink, http.HandlerFunc(connect)) }()
	return nil
}

// listen listens at a socket, in the place of one that was left there.
func listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("failed to open a tunnel: %w", err)
	}
	return listener, nil
}

// forward connects whoever comes to an address, until the listener is closed.
func forward(listener net.Listener, network, address string) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			to, err := net.Dial(network, address)
			if err != nil {
				from.Close()
				return
			}
			splice(from, from, to)
		}()
	}
}

// connect answers HTTP CONNECT, by which the API server reaches the kubelet.
func connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is served here", http.StatusMethodNotAllowed)
		return
	}
	to, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		to.Close()
		return
	}
	splice(from, buffered.Reader, to)
}

// splice copies both ways until both ends are done. What the client has already
// sent may be in a buffer.
func splice(from net.Conn, sent io.Reader, to net.Conn) {
	defer from.Close()
	defer to.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(to, sent)
		closeWrite(to)
	}()
	_, _ = io.Copy(from, bufio.NewReader(to))
	closeWrite(from)
	<-done
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
