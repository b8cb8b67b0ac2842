package certs

import (
	"math"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Source provides the current serving certificate. It runs on every replica.
type Source interface {
	servertls.CertificateSource
	manager.LeaderElectionRunnable
	// Accepted reports whether callers accept the certificate, as far as the
	// source can know.
	Accepted() bool
}

// Files serves a certificate and key from files and follows their renewal,
// looking at them every ten seconds. What cannot be read, or does not belong
// together, leaves the certificate that is served as it is.
func Files(certFile, keyFile string) Source {
	// It would otherwise end the process at the twelfth failure of its life.
	return &fileSource{servertls.FileCertificateSource{CertPath: certFile, KeyPath: keyFile, MaxFailures: math.MaxInt}}
}

type fileSource struct {
	servertls.FileCertificateSource
}

// Healthy reports whether there is a certificate to serve.
func (s *fileSource) Healthy() bool {
	_, err := s.GetCertificate(nil)
	return err == nil
}

// Accepted is true: whoever writes the files writes the bundle.
func (*fileSource) Accepted() bool { return true }

// NeedLeaderElection is false: every replica serves webhooks.
func (*fileSource) NeedLeaderElection() bool { return false }
