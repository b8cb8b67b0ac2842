package training

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// sshKeyGenerator names generateSSHKey. Plan names it; the loop runs it.
const sshKeyGenerator = "ssh-key"

// generateSSHKey fills a secret of type kubernetes.io/ssh-auth with a new key
// pair: an ECDSA key on P-521 in the PEM form of SEC 1, which every OpenSSH
// reads, and its public half in the form of authorized_keys (RFC 4253, section
// 6.6, and RFC 5656, section 3.1).
func generateSSHKey(child plan.Object) error {
	secret, ok := child.(*corev1.Secret)
	if !ok {
		return fmt.Errorf("an ssh key goes into a Secret, not into a %T", child)
	}
	key, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		return fmt.Errorf("failed to make a key: %w", err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("failed to encode a private key: %w", err)
	}
	point, err := key.PublicKey.ECDH()
	if err != nil {
		return fmt.Errorf("failed to encode a public key: %w", err)
	}
	const kind, curve = "ecdsa-sha2-nistp521", "nistp521"
	var blob []byte
	for _, part := range [][]byte{[]byte(kind), []byte(curve), point.Bytes()} {
		blob = binary.BigEndian.AppendUint32(blob, uint32(len(part)))
		blob = append(blob, part...)
	}
	secret.Data = map[string][]byte{
		corev1.SSHAuthPrivateKey: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
		sshPublicKey:             []byte(kind + " " + base64.StdEncoding.EncodeToString(blob) + "\n"),
	}
	return nil
}
