package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"time"
)

// maxAuthorities bounds how many authorities a bundle keeps.
const maxAuthorities = 5

// withAuthority gives a bundle that has the authority first and, after it, the
// other authorities of the bundle that have not expired: leaves of these may
// still be served elsewhere. It gives the bundle itself where nothing changes.
func withAuthority(bundle, authority []byte, now time.Time) []byte {
	out := bytes.TrimSpace(authority)
	kept := 1
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		encoded := bytes.TrimSpace(pem.EncodeToMemory(block))
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || now.After(certificate.NotAfter) || bytes.Contains(out, encoded) || kept == maxAuthorities {
			continue
		}
		out = append(append(bytes.Clone(out), '\n'), encoded...)
		kept++
	}
	return append(bytes.Clone(out), '\n')
}
