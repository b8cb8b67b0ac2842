package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os/signal"
	"strconv"
	"syscall"

	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// serveReference serves decodeAndAllow and controller-runtime's conversion by its
// webhook server until it is told to stop. It is what this binary does as a child of itself.
func serveReference(address string) error {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("failed to read the address to serve at: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("failed to read the port to serve at: %w", err)
	}
	handler, err := decodeAndAllow()
	if err != nil {
		return err
	}
	converter, err := typedHandler()
	if err != nil {
		return err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return fmt.Errorf("failed to make a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("failed to read a certificate: %w", err)
	}
	server := webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){func(config *tls.Config) {
		config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
	}}})
	server.Register(validatePath, handler)
	server.Register(convertPath, converter)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return server.Start(ctx)
}
