package certs

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// keyPair writes a certificate of a common name and its key, both as PEM.
func keyPair(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	made := newIssuer(t, name, time.Now().Add(time.Hour))
	raw, err := x509.MarshalPKCS8PrivateKey(made.key)
	if err != nil {
		t.Fatal(err)
	}
	return made.pem, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	source, ok := Files(certFile, keyFile).(*fileSource)
	if !ok {
		t.Fatal("the source is of another type")
	}
	source.UpdateInterval = time.Millisecond
	done := make(chan error, 1)
	go func() { done <- source.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Errorf("the source failed: %v", err)
		}
	})
	write := func(file string, content []byte) {
		t.Helper()
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serves := func(name string) func() bool {
		return func() bool {
			certificate, err := source.GetCertificate(nil)
			if err != nil {
				return false
			}
			leaf, err := x509.ParseCertificate(certificate.Certificate[0])
			return err == nil && leaf.Subject.CommonName == name
		}
	}
	s := &scene{t: t}

	// More failures than cert-manager's source bears.
	<-time.After(50 * time.Millisecond)
	if source.Healthy() {
		t.Error("it is healthy without a certificate")
	}
	firstCert, firstKey := keyPair(t, "first")
	write(certFile, firstCert)
	write(keyFile, firstKey)
	s.await("the first certificate", serves("first"))
	if !source.Healthy() || source.NeedLeaderElection() {
		t.Error("it is not healthy with a certificate, on every replica")
	}

	secondCert, secondKey := keyPair(t, "second")
	write(keyFile, secondKey)
	<-time.After(50 * time.Millisecond)
	if !serves("first")() {
		t.Error("the old certificate is not served while half of the new one is there")
	}
	write(certFile, secondCert)
	s.await("the renewed certificate", serves("second"))
}
