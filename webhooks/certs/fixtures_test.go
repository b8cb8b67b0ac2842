package certs

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"
)

// issuer is an authority that signs.
type issuer struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newIssuer makes an authority that is valid until an instant.
func newIssuer(t testing.TB, name string, until time.Time) *issuer {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: until.Add(-1000 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{certificate: certificate, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})}
}

// sign makes a leaf that is valid from an hour ago until an instant.
func (i *issuer) sign(template *x509.Certificate, until time.Time) (*x509.Certificate, error) {
	leaf := *template
	leaf.SerialNumber, leaf.NotBefore, leaf.NotAfter = big.NewInt(2), until.Add(-10*time.Hour), until
	raw, err := x509.CreateCertificate(rand.Reader, &leaf, i.certificate, template.PublicKey, i.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(raw)
}

// rotating is the authority of a self-managed source, with what it signs by in
// the test's hand.
type rotating struct {
	mu       sync.Mutex
	by       *issuer
	until    time.Time
	watchers []chan<- struct{}
}

func (*rotating) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (r *rotating) WatchRotation(watcher chan<- struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watchers = append(r.watchers, watcher)
}

func (*rotating) StopWatchingRotation(chan<- struct{}) {}

func (r *rotating) Sign(template *x509.Certificate) (*x509.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by.sign(template, r.until)
}

// rotate signs by another authority from now on.
func (r *rotating) rotate(by *issuer, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by, r.until = by, until
	for _, watcher := range r.watchers {
		watcher <- struct{}{}
	}
}
