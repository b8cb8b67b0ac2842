// Package certs provides the serving certificate of the webhook server, from
// one of three sources behind one interface:
//
//   - self-managed: an authority in a Secret that all replicas share, a leaf
//     for each process, and the CA bundle written into everything that calls
//     the webhooks;
//   - cert-manager: a Certificate of config/certmanager, mounted as files, with
//     the bundle written by its CA injector;
//   - files: any certificate and key that somebody else renews.
package certs
