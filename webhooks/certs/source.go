package certs

import (
	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Source provides the current serving certificate. It runs on every replica.
type Source interface {
	servertls.CertificateSource
	manager.LeaderElectionRunnable
}

// Files serves a certificate and key from files and follows their renewal,
// looking at them every minute.
func Files(certFile, keyFile string) Source {
	return &fileSource{servertls.FileCertificateSource{CertPath: certFile, KeyPath: keyFile}}
}

type fileSource struct {
	servertls.FileCertificateSource
}

// NeedLeaderElection is false: every replica serves webhooks.
func (*fileSource) NeedLeaderElection() bool { return false }
