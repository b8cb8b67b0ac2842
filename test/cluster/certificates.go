package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority is the cluster's certificate authority, for servers and clients alike.
type authority struct {
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	certPEM []byte
	keyPEM  []byte
}

// keyPair is a certificate and its private key, PEM encoded.
type keyPair struct {
	cert, key []byte
}

// certificateLife is ample for a test and for a day of local work.
const certificateLife = 30 * 24 * time.Hour

func newAuthority() (*authority, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "penstock-test-cluster"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	cert, certPEM, err := sign(template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// server issues a certificate for servers on this machine, and for the in-cluster names of the API server.
func (a *authority) server() (keyPair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.ParseIP(ServiceIP)},
	})
}

// client issues a certificate that the API server takes for the user with these groups.
func (a *authority) client(user string, groups []string) (keyPair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	_, certPEM, err := sign(template, a.cert, &key.PublicKey, a.key)
	return keyPair{cert: certPEM, key: keyPEM}, err
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to make a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to encode a key: %w", err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, []byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = serial
	// A minute in the past, for clocks that step back.
	template.NotBefore = time.Now().Add(-time.Minute)
	template.NotAfter = time.Now().Add(certificateLife)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// writeCertificates makes the certificates and keys that the components read from files.
func writeCertificates(dir string) (*authority, error) {
	ca, err := newAuthority()
	if err != nil {
		return nil, err
	}
	server, err := ca.server()
	if err != nil {
		return nil, err
	}
	_, serviceAccountKey, err := newKey()
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{
		"ca.crt": ca.certPEM, "ca.key": ca.keyPEM,
		"apiserver.crt": server.cert, "apiserver.key": server.key,
		"service-account.key": serviceAccountKey,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, fmt.Errorf("failed to write %s: %w", name, err)
		}
	}
	return ca, nil
}
