package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"k8s.io/client-go/rest"
)

// spread is how long API servers get to see a new CA bundle, after it was
// written everywhere, before a leaf that needs it is served; and how far their
// clocks may be behind, for which a new leaf is not valid yet.
const spread = 5 * time.Second

// SelfManagedOptions configure a self-managed source.
type SelfManagedOptions struct {
	// Config connects to the API server.
	Config *rest.Config
	// Namespace and Name of the Secret that holds the authority.
	Namespace, Name string
	// DNSNames that the leaf is valid for.
	DNSNames []string
	// CADuration is how long the authority is valid; 0 means a year. It is
	// renewed after two thirds.
	CADuration time.Duration
	// LeafDuration is how long a leaf is valid; 0 means a week. It is renewed
	// after two thirds.
	LeafDuration time.Duration
}

// SelfManaged serves leaves of an authority of its own, which it makes and
// renews in a Secret. When the authority is renewed, the old leaf is served
// until everything that calls the webhooks trusts the new one, so that no call
// fails in between.
type SelfManaged struct {
	dynamic *servertls.DynamicSource
	clock   func() time.Time

	lock sync.Mutex
	// served is the certificate handed out last.
	served *tls.Certificate
	// bundle are the authorities whose leaves callers accept, and trusted the
	// same for verifying.
	bundle  []byte
	trusted *x509.CertPool
	// since is when bundle last changed.
	since time.Time
}

var _ Source = &SelfManaged{}

// NewSelfManaged makes a self-managed source. It serves nothing until started.
func NewSelfManaged(opts SelfManagedOptions) *SelfManaged {
	return newSelfManaged(opts.DNSNames, time.Now, &authority.DynamicAuthority{
		SecretNamespace: opts.Namespace,
		SecretName:      opts.Name,
		SecretLabels:    map[string]string{PartOfLabel: PartOfValue},
		RESTConfig:      opts.Config,
		CommonName:      "penstock-webhook-ca",
		CADuration:      opts.CADuration,
		LeafDuration:    opts.LeafDuration,
	})
}

func newSelfManaged(dnsNames []string, clock func() time.Time, by servertls.Authority) *SelfManaged {
	return &SelfManaged{dynamic: &servertls.DynamicSource{DNSNames: dnsNames, Authority: by}, clock: clock}
}

// Start makes and renews authority and leaf until ctx is done.
func (s *SelfManaged) Start(ctx context.Context) error {
	if err := s.dynamic.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("failed to manage certificates: %w", err)
	}
	return nil
}

// NeedLeaderElection is false: every replica serves webhooks.
func (*SelfManaged) NeedLeaderElection() bool { return false }

// Healthy reports whether there is a certificate to serve.
func (s *SelfManaged) Healthy() bool { return s.dynamic.Healthy() }

// Accepted reports whether the bundle is written everywhere, so that callers
// accept what is served.
func (s *SelfManaged) Accepted() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.trusted != nil
}

// GetCertificate gives the newest leaf that callers accept, or the newest one
// when they would accept none.
func (s *SelfManaged) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	newest, err := s.dynamic.GetCertificate(hello)
	if err != nil {
		return nil, err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.served == newest {
		return newest, nil
	}
	now := s.clock()
	settled := now.Sub(s.since) > spread && s.accepted(newest, now.Add(-spread))
	if s.accepted(s.served, now) && !settled {
		return s.served, nil
	}
	s.served = newest
	return newest, nil
}

// accepted reports whether callers accept a leaf when their clocks say now.
func (s *SelfManaged) accepted(leaf *tls.Certificate, now time.Time) bool {
	if leaf == nil || s.trusted == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(leaf.Certificate[0])
	if err != nil {
		return false
	}
	_, err = certificate.Verify(x509.VerifyOptions{Roots: s.trusted, CurrentTime: now})
	return err == nil
}

// trust says that everything that calls the webhooks accepts leaves of an
// authority, beside those it accepted before.
func (s *SelfManaged) trust(authority []byte) {
	s.lock.Lock()
	defer s.lock.Unlock()
	bundle := withAuthority(s.bundle, authority, s.clock())
	if bytes.Equal(bundle, s.bundle) {
		return
	}
	s.bundle, s.trusted, s.since = bundle, x509.NewCertPool(), s.clock()
	s.trusted.AppendCertsFromPEM(bundle)
}
